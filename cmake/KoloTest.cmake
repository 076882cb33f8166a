# GoogleTest's headers take longer to read than most tests to compile. Builds without unity go without
# the precompiled header, too, and show which file forgot to include what it uses.
if(KOLO_UNITY)
  kolo_precompiled(kolo_test_pch HEADERS <gmock/gmock.h> <gtest/gtest.h>
                   LIBRARIES GTest::gtest GTest::gmock)
endif()

# kolo_test(NAME SOURCES … [DEPENDS …] [LABELS …] [TIMEOUT seconds] [MPI] [TORCH])
# Makes the GoogleTest program kolo_NAME and the ctest test NAME. MPI: it starts programs that load
# an MPI library; what such a library leaks or locks is not looked at by the sanitizers.
# TORCH: its files include <torch/torch.h>. A time limit is there to end what hangs; under a sanitizer
# it is five times as long.
function(kolo_test name)
  cmake_parse_arguments(T "MPI;TORCH" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  if(KOLO_SANITIZE)
    math(EXPR T_TIMEOUT "${T_TIMEOUT} * 5")
  endif()
  add_executable(kolo_${name} ${T_SOURCES})
  target_include_directories(kolo_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/include)
  # What is tested is optimised; the tests themselves need to compile quickly.
  kolo_compiles_quickly(kolo_${name})
  # GCC 12 sees overlaps and overruns in std::string's operator+ that are not there (its bug 105651).
  target_compile_options(kolo_${name} PRIVATE -Wno-array-bounds -Wno-stringop-overread)
  target_link_libraries(kolo_${name} PRIVATE ${T_DEPENDS} GTest::gtest_main GTest::gmock
                                             kolo_warnings)
  add_test(NAME ${name} COMMAND kolo_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}")
  if(T_TORCH)
    kolo_shares_torch_header(kolo_${name})
    kolo_torch_test_environment(${name})
  elseif(T_DEPENDS MATCHES "kolo_(train|nas|torch)")  # libtorch has flags of its own
    add_dependencies(kolo_uses_torch kolo_${name})
  elseif(KOLO_UNITY)
    kolo_shares_header(kolo_${name} kolo_test_pch)
  endif()
  if(T_MPI)  # the last word about leaks
    set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
      ASAN_OPTIONS=detect_leaks=0$<$<BOOL:${T_TORCH}>::detect_container_overflow=0>
      TSAN_OPTIONS=ignore_noninstrumented_modules=1:detect_deadlocks=0)
  endif()
endfunction()

# libtorch is not instrumented. What that hides and what would be found wrongly:
#  - its vectors and ours share code (templates are instantiated on both sides), so ASan's marks of
#    the unused part of a vector are not kept up: detect_container_overflow=0;
#  - it keeps registries and thread pools until the end: leaks inside it are suppressed by name;
#  - TSan cannot see its locks, OpenMP's barriers least of all: accesses made inside modules without
#    instrumentation are ignored. Races in kolo's own code are found as ever.
function(kolo_torch_test_environment name)
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT
    ASAN_OPTIONS=detect_container_overflow=0
    LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/cmake/lsan-torch.txt:print_suppressions=0
    TSAN_OPTIONS=ignore_noninstrumented_modules=1:detect_deadlocks=0
    OMP_NUM_THREADS=1)
endfunction()

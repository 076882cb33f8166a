# kolo_test(NAME SOURCES … [DEPENDS …] [LABELS …] [TIMEOUT seconds] [MPI])
# Makes the GoogleTest program kolo_NAME and the ctest test NAME. MPI: it starts programs that load
# an MPI library; what such a library leaks or locks is not looked at by the sanitizers.
function(kolo_test name)
  cmake_parse_arguments(T "MPI" "TIMEOUT" "SOURCES;DEPENDS;LABELS" ${ARGN})
  if(NOT T_TIMEOUT)
    set(T_TIMEOUT 60)
  endif()
  add_executable(kolo_${name} ${T_SOURCES})
  target_include_directories(kolo_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src
                             ${PROJECT_SOURCE_DIR}/tests ${PROJECT_SOURCE_DIR}/include)
  # What is tested is optimised; the tests themselves need to compile quickly.
  target_compile_options(kolo_${name} PRIVATE -O1)
  target_link_libraries(kolo_${name} PRIVATE ${T_DEPENDS} GTest::gtest_main GTest::gmock
                                             kolo_warnings)
  add_test(NAME ${name} COMMAND kolo_${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${T_TIMEOUT} LABELS "${T_LABELS}")
  if(T_MPI)
    set_property(TEST ${name} PROPERTY ENVIRONMENT ASAN_OPTIONS=detect_leaks=0
                 TSAN_OPTIONS=ignore_noninstrumented_modules=1:detect_deadlocks=0)
  endif()
endfunction()

# One static library per module, with kolo's own compiler settings.
include(GNUInstallDirs)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

find_program(CCACHE_PROGRAM ccache)
if(CCACHE_PROGRAM AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()

# A hundred tests are linked, each in a fraction of the time with mold.
find_program(MOLD_PROGRAM mold)
set(linker_flags "${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_SHARED_LINKER_FLAGS} ${CMAKE_MODULE_LINKER_FLAGS}")
if(MOLD_PROGRAM AND NOT linker_flags MATCHES "-fuse-ld=" AND
   (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" OR CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12.1))
  add_link_options(-fuse-ld=mold)
endif()

add_library(kolo_warnings INTERFACE)
target_compile_options(kolo_warnings INTERFACE -Wall -Wextra -Werror)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees an overflow in fmt 9's format-string checker, and overlaps in std::string's
  # operator+ (its bug 105651), that are not there.
  target_compile_options(kolo_warnings INTERFACE -Wno-stringop-overflow -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # Clang warns of what std::stable_sort of GCC 12's library calls itself, and does not know all
  # warnings of GCC that are switched off by name elsewhere.
  target_compile_options(kolo_warnings INTERFACE -Wno-deprecated-declarations
                                                 -Wno-unknown-warning-option)
endif()
if(KOLO_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # With instrumentation GCC 12 loses track of which member of a std::variant is alive.
  target_compile_options(kolo_warnings INTERFACE -Wno-maybe-uninitialized)
endif()
if(KOLO_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(KOLO_SANITIZE)
  # A finding must fail the test that made it: UBSan would otherwise only print.
  add_compile_options(-fsanitize=${KOLO_SANITIZE} -fno-sanitize-recover=all
                      -fno-omit-frame-pointer)
  if(KOLO_SANITIZE MATCHES undefined)
    # It looks at memory by means of a pipe, and is wrong where a test has used up all descriptors.
    add_compile_options(-fno-sanitize=vptr)
  endif()
  add_link_options(-fsanitize=${KOLO_SANITIZE})
endif()

# kolo_compiles_quickly(TARGET): for code that waits for others most of its time, or is seldom run. What
# optimising it would cost those who build is more than they would gain.
# From GCC 13 on, the precompiled headers that they share would have to be compiled likewise.
function(kolo_compiles_quickly target)
  if(NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13))
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
endfunction()

# kolo_module(NAME SOURCES … [DEPENDS …] [PRIVATE_DEPENDS …])
# Makes the static library kolo_NAME with the alias kolo::NAME. DEPENDS are other modules or libraries.
function(kolo_module name)
  cmake_parse_arguments(MODULE "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  add_library(kolo_${name} STATIC ${MODULE_SOURCES})
  add_library(kolo::${name} ALIAS kolo_${name})
  set_target_properties(kolo_${name} PROPERTIES EXPORT_NAME ${name})
  target_include_directories(kolo_${name}
    PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
           $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include>
           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
    PRIVATE ${PROJECT_SOURCE_DIR}/src)
  target_compile_features(kolo_${name} PUBLIC cxx_std_20)
  target_link_libraries(kolo_${name} PUBLIC ${MODULE_DEPENDS} PRIVATE ${MODULE_PRIVATE_DEPENDS}
                                     $<BUILD_INTERFACE:kolo_warnings>)
  set_property(GLOBAL APPEND PROPERTY KOLO_MODULES kolo_${name})
endfunction()

# Precompiled headers that many targets share.
#
# kolo_precompiled(NAME HEADERS … [LIBRARIES …]): compiles the headers once, with the flags of the
# libraries. kolo_shares_header(TARGET NAME): the files of a target begin with them.

# ccache keeps results of compilations with a precompiled header only when it may trust the header's
# content instead of looking inside; see "precompiled headers" in its manual.
if(CCACHE_PROGRAM AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(KOLO_PCH_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                        ${CCACHE_PROGRAM})
  set(KOLO_PCH_OPTIONS -fpch-preprocess)
endif()

# The header is compiled with -fPIC; GCC refuses it in a program compiled with -fPIE.
function(kolo_compiles_as_precompiled target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC ${KOLO_PCH_OPTIONS})
  if(KOLO_PCH_LAUNCHER)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${KOLO_PCH_LAUNCHER}")
  endif()
endfunction()

function(kolo_precompiled name)
  cmake_parse_arguments(P "" "" "HEADERS;LIBRARIES" ${ARGN})
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/${name}.cc CONTENT "// Carries precompiled headers.\n")
  add_library(${name} OBJECT ${PROJECT_BINARY_DIR}/${name}.cc)
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE ${P_LIBRARIES} kolo_warnings)
  target_precompile_headers(${name} PRIVATE ${P_HEADERS})
  kolo_compiles_as_precompiled(${name})
endfunction()

function(kolo_shares_header target name)
  kolo_compiles_as_precompiled(${target})
  target_precompile_headers(${target} REUSE_FROM ${name})
endfunction()

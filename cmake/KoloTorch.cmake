# libtorch (Debian's libtorch-dev 1.13.1, or a newer one found by CMAKE_PREFIX_PATH), and one
# precompiled header of <torch/torch.h> for every file that includes it: without it such a file takes
# 16 to 19 s, with it 2 to 5.
find_package(Torch 1.13 QUIET)
if(NOT Torch_FOUND)
  message(FATAL_ERROR "libtorch is missing: scripts/setup installs Debian's; another one is found by "
                      "-DCMAKE_PREFIX_PATH=DIR; -DKOLO_WITH_TORCH=OFF builds kolo without training")
endif()

file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/torch_pch.cc CONTENT "// Carries the precompiled header.\n")
add_library(kolo_torch_pch OBJECT ${PROJECT_BINARY_DIR}/torch_pch.cc)
target_compile_features(kolo_torch_pch PRIVATE cxx_std_20)
target_link_libraries(kolo_torch_pch PRIVATE torch kolo_warnings)
target_precompile_headers(kolo_torch_pch PRIVATE <torch/torch.h>)

# ccache keeps results of compilations with a precompiled header only when it may trust the header's
# content instead of looking inside; see "precompiled headers" in its manual.
if(CCACHE_PROGRAM AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(KOLO_TORCH_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                          ${CCACHE_PROGRAM})
  set(KOLO_TORCH_PCH_OPTIONS -fpch-preprocess)
endif()

# kolo_shares_torch_header(TARGET): its files are compiled with the common precompiled header. The
# header is compiled with -fPIC; GCC refuses it in a program compiled with -fPIE.
function(kolo_shares_torch_header target)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${target} PRIVATE -fPIC ${KOLO_TORCH_PCH_OPTIONS})
  if(KOLO_TORCH_LAUNCHER)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${KOLO_TORCH_LAUNCHER}")
  endif()
  if(NOT target STREQUAL kolo_torch_pch)
    target_precompile_headers(${target} REUSE_FROM kolo_torch_pch)
  endif()
endfunction()
kolo_shares_torch_header(kolo_torch_pch)

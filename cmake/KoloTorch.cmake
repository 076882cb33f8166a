# libtorch (Debian's libtorch-dev 1.13.1, or a newer one found by CMAKE_PREFIX_PATH), and one
# precompiled header of <torch/torch.h> for every file that includes it: without it such a file takes
# 16 to 19 s, with it 2 to 5.
find_package(Torch 1.13 QUIET)
if(NOT Torch_FOUND)
  message(FATAL_ERROR "libtorch is missing: scripts/setup installs Debian's; another one is found by "
                      "-DCMAKE_PREFIX_PATH=DIR; -DKOLO_WITH_TORCH=OFF builds kolo without training")
endif()
if("${TORCH_CXX_FLAGS}" MATCHES "_GLIBCXX_USE_CXX11_ABI=0")
  message(FATAL_ERROR "the libtorch in ${TORCH_INSTALL_PREFIX} has the strings and lists of GCC 4 "
                      "(_GLIBCXX_USE_CXX11_ABI=0), which no other library here has; take a build with "
                      "the C++11 ABI, as wheels of PyTorch from 2.7 on are")
endif()
# Wheels bring headers of a newer fmt, which come before Debian's, but not its library.
get_target_property(fmt_headers fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
if(EXISTS ${TORCH_INSTALL_PREFIX}/include/fmt/format.h AND
   NOT "${TORCH_INSTALL_PREFIX}/include" IN_LIST fmt_headers)
  set_property(TARGET torch APPEND PROPERTY INTERFACE_COMPILE_DEFINITIONS FMT_HEADER_ONLY)
endif()

kolo_precompiled(kolo_torch_pch HEADERS <torch/torch.h> LIBRARIES torch)

# Builds all that depends on the version of libtorch.
add_custom_target(kolo_uses_torch)

# kolo_shares_torch_header(TARGET): its files are compiled with the common precompiled header.
function(kolo_shares_torch_header target)
  kolo_shares_header(${target} kolo_torch_pch)
  add_dependencies(kolo_uses_torch ${target})
endfunction()

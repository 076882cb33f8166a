# libtorch (Debian's libtorch-dev 1.13.1, or a newer one found by CMAKE_PREFIX_PATH), and one
# precompiled header of <torch/torch.h> for every file that includes it: without it such a file takes
# 16 to 19 s, with it 2 to 5.
find_package(Torch 1.13 QUIET)
if(NOT Torch_FOUND)
  message(FATAL_ERROR "libtorch is missing: scripts/setup installs Debian's; another one is found by "
                      "-DCMAKE_PREFIX_PATH=DIR; -DKOLO_WITH_TORCH=OFF builds kolo without training")
endif()

kolo_precompiled(kolo_torch_pch HEADERS <torch/torch.h> LIBRARIES torch)

# kolo_shares_torch_header(TARGET): its files are compiled with the common precompiled header.
function(kolo_shares_torch_header target)
  kolo_shares_header(${target} kolo_torch_pch)
endfunction()

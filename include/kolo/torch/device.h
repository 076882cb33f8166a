// The device on which a rank computes.
#pragma once

#include <torch/torch.h>

namespace kolo {

/// The CUDA device with the number of this rank on its host (over again where there are more ranks
/// than devices), or the CPU where libtorch has no CUDA. Throws failed_precondition before init().
[[nodiscard]] torch::Device device_of_rank();

}  // namespace kolo

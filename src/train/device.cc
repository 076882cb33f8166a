#include "kolo/torch/device.h"

#include "kolo/context.h"

namespace kolo {

torch::Device device_of_rank() {
  const int local = local_rank();
  if (!torch::cuda::is_available()) return torch::kCPU;
  const auto devices = static_cast<int>(torch::cuda::device_count());
  return {torch::kCUDA, static_cast<c10::DeviceIndex>(local % devices)};
}

}  // namespace kolo

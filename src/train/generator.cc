#include "train/generator.h"

#include <torch/torch.h>

#include <cstring>
#include <mutex>

namespace kolo::train {

std::string generator_bytes() {
  torch::Tensor state = at::detail::getDefaultCPUGenerator().get_state();
  return {static_cast<const char*>(state.data_ptr()), static_cast<std::size_t>(state.nbytes())};
}

void load_generator(const std::string& bytes) {
  torch::Tensor state = torch::empty({static_cast<int64_t>(bytes.size())}, torch::kUInt8);
  std::memcpy(state.data_ptr(), bytes.data(), bytes.size());
  at::Generator generator = at::detail::getDefaultCPUGenerator();
  std::lock_guard lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace kolo::train

// libtorch's random generator of the process, from which layers draw their weights and dropout its
// zeros.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <mutex>

namespace kolo::nas {

/// Seeds it, and keeps threads that do the same from doing so while this one draws.
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : turn_(one_at_a_time()) { torch::manual_seed(seed); }

 private:
  static std::mutex& one_at_a_time() {
    static std::mutex mutex;
    return mutex;
  }
  std::scoped_lock<std::mutex> turn_;
};

}  // namespace kolo::nas

// libtorch's random generator of the process, from which layers draw their weights and dropout its
// zeros.
#pragma once

#include <torch/torch.h>

#include <cstdint>

#include "base/mutex.h"

namespace kolo::nas {

/// Seeds it, and keeps threads that do the same from doing so while this one draws.
class SeededRandom {
 public:
  explicit SeededRandom(std::uint64_t seed) : turn_(one_at_a_time()) { torch::manual_seed(seed); }

 private:
  static Mutex& one_at_a_time() {
    static Mutex mutex;
    return mutex;
  }
  MutexLock turn_;
};

}  // namespace kolo::nas

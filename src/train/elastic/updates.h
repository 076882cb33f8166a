// How often the DistributedOptimizers of this process have begun to change parameters. What a
// commit in place has only marked is still as it was where this is, too.
#pragma once

#include <atomic>
#include <cstdint>

namespace kolo::train {

inline std::atomic<std::uint64_t>& parameter_updates() {
  static std::atomic<std::uint64_t> updates{0};
  return updates;
}

}  // namespace kolo::train

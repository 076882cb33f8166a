// How often the DistributedOptimizers of this process have begun to change parameters.
//
// commit_in_place() notes this number instead of copying parameters. As long as the number is the
// same, the parameters are still those of the commit.
#pragma once

#include <atomic>
#include <cstdint>

namespace kolo::train {

inline std::atomic<std::uint64_t>& parameter_updates() {
  static std::atomic<std::uint64_t> updates{0};
  return updates;
}

}  // namespace kolo::train

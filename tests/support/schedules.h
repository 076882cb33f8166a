// Simulations play schedules, each of which follows from its number alone.
//
//   KOLO_SIMULATION_SEED=17    plays schedule 17 and no other
//   KOLO_SIMULATIONS=100000    plays so many instead of what the test has by itself
//   KOLO_SIMULATION_FIRST=501  plays those from this one on
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "base/env.h"
#include "base/log.h"
#include "support/scale.h"

namespace kolo::test {

/// `play(number)` says what went wrong, "" for nothing. Ends with the first schedule that fails.
template <class Play>
void play_schedules(int usual, Play&& play) {
  log::set_level(log::Level::error);  // faults are what it is about
  std::int64_t first = setting_integer("SIMULATION_FIRST").value_or(1);
  std::int64_t last = first - 1 + setting_integer("SIMULATIONS").value_or(scaled(usual));
  if (const auto only = setting_integer("SIMULATION_SEED")) first = last = *only;
  for (std::int64_t number = first; number <= last; ++number)
    ASSERT_EQ(play(static_cast<std::uint64_t>(number)), "") << "KOLO_SIMULATION_SEED=" << number;
}

/// The first schedule that fails, of so many: what a simulation is worth is seen by the defects
/// that it finds. 0 = none.
template <class Play>
std::uint64_t first_failure(std::uint64_t most, Play&& play) {
  for (std::uint64_t number = 1; number <= most; ++number)
    if (const std::string wrong = play(number); !wrong.empty()) return number;
  return 0;
}

}  // namespace kolo::test

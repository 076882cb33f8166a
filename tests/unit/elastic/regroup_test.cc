#include <gtest/gtest.h>

#include <cstdlib>

#include "unit/elastic/regroup_simulation.h"

namespace kolo::test {
namespace {

/// KOLO_SCHEDULE=N plays schedule N alone.
TEST(RegroupTest, AThousandSchedulesOfDeathsJoinsAndCutsEndWell) {
  const char* only = std::getenv("KOLO_SCHEDULE");
  const std::uint64_t first = only != nullptr ? std::strtoull(only, nullptr, 10) : 0;
  const std::uint64_t last = only != nullptr ? first : 999;
  for (std::uint64_t number = first; number <= last; ++number)
    ASSERT_EQ(RegroupSimulation(number).run(), "") << "KOLO_SCHEDULE=" << number;
}

}  // namespace
}  // namespace kolo::test

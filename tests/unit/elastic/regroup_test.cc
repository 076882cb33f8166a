#include <gtest/gtest.h>

#include "support/schedules.h"
#include "unit/elastic/regroup_simulation.h"

namespace kolo::test {
namespace {

TEST(RegroupTest, SchedulesOfDeathsJoinsAndCutsEndWell) {
  play_schedules(98'500, [](std::uint64_t number) { return RegroupSimulation(number).run(); });
}

TEST(RegroupTest, FindsDefects) {
  for (const Plant plant : {Plant::plans_get_lost, Plant::deaths_are_not_told}) {
    EXPECT_NE(
        first_failure(
            1000, [plant](std::uint64_t number) { return RegroupSimulation(number, plant).run(); }),
        0U)
        << static_cast<int>(plant);
  }
}

}  // namespace
}  // namespace kolo::test

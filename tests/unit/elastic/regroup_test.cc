#include <gtest/gtest.h>

#include "support/schedules.h"
#include "unit/elastic/regroup_simulation.h"

namespace kolo::test {
namespace {

TEST(RegroupTest, SchedulesOfDeathsJoinsAndCutsEndWell) {
  play_schedules(98'500, [](std::uint64_t number) { return RegroupSimulation(number).run(); });
}

TEST(RegroupTest, FindsDefects) {
  for (const RegroupDefect defect :
       {RegroupDefect::plans_get_lost, RegroupDefect::deaths_are_not_told,
        RegroupDefect::the_stopped_seem_alive}) {
    EXPECT_NE(first_failure(1000,
                            [defect](std::uint64_t number) {
                              return RegroupSimulation(number, defect).run();
                            }),
              0U)
        << static_cast<int>(defect);
  }
}

}  // namespace
}  // namespace kolo::test

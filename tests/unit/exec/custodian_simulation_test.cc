#include "unit/exec/custodian_simulation.h"

#include <gtest/gtest.h>

#include "support/schedules.h"

namespace kolo::test {
namespace {

TEST(CustodianSimulationTest, EveryEndIsToldOnceWhenNothingIsLeft) {
  play_schedules(98'500, [](std::uint64_t number) { return CustodianSimulation(number).run(); });
}

TEST(CustodianSimulationTest, FindsDefects) {
  for (const Plant plant :
       {Plant::reaps_too_early, Plant::forgets_the_dying, Plant::tells_with_the_exit}) {
    EXPECT_NE(first_failure(1000,
                            [plant](std::uint64_t number) {
                              return CustodianSimulation(number, plant).run();
                            }),
              0U)
        << static_cast<int>(plant);
  }
}

}  // namespace
}  // namespace kolo::test

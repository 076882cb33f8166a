#include "unit/exec/custodian_simulation.h"

#include <gtest/gtest.h>

#include "support/schedules.h"

namespace kolo::test {
namespace {

TEST(CustodianSimulationTest, EveryEndIsToldOnceWhenNothingIsLeft) {
  play_schedules(98'500, [](std::uint64_t number) { return CustodianSimulation(number).run(); });
}

TEST(CustodianSimulationTest, FindsDefects) {
  for (const CustodianDefect defect :
       {CustodianDefect::reaps_too_early, CustodianDefect::forgets_the_dying,
        CustodianDefect::tells_with_the_exit}) {
    EXPECT_NE(first_failure(1000,
                            [defect](std::uint64_t number) {
                              return CustodianSimulation(number, defect).run();
                            }),
              0U)
        << static_cast<int>(defect);
  }
}

}  // namespace
}  // namespace kolo::test

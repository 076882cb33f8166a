#include "unit/tune/controller_simulation.h"

#include <gtest/gtest.h>

#include "support/memory_folder.h"
#include "support/schedules.h"

namespace kolo::test {
namespace {

/// Hundreds of studies in one database are let go together: each new one looks at their names.
constexpr std::uint64_t kStudiesInAFolder = 200;

class ControllerSimulationTest : public testing::Test {
 protected:
  using Faults = ControllerSimulation::Faults;

  std::string play(std::uint64_t number, Faults faults = Faults::processes) {
    const bool is_alone = faults >= Faults::disk_lies;
    if (!folder_ || is_alone || number % kStudiesInAFolder == 0)
      folder_.emplace(memory_folder("kolo-simulation"));
    return ControllerSimulation(number, folder_->path(), faults).run();
  }

 private:
  std::optional<TempDir> folder_;
};

TEST_F(ControllerSimulationTest, NothingIsLostDoneTwiceOrLeftBehind) {
  play_schedules(3000, [this](std::uint64_t number) { return play(number); });
}

TEST_F(ControllerSimulationTest, FindsADatabaseThatLies) {
  const auto lying = [this](std::uint64_t number) { return play(number, Faults::database_lies); };
  EXPECT_NE(first_failure(1000, lying), 0U);
}

TEST_F(ControllerSimulationTest, FindsADiskThatLies) {
  const auto lying = [this](std::uint64_t number) { return play(number, Faults::disk_lies); };
  EXPECT_NE(first_failure(1000, lying), 0U);
}

TEST_F(ControllerSimulationTest, APowerFailureTakesNothingThatWasFlushed) {
  play_schedules(2000, [this](std::uint64_t number) { return play(number, Faults::power); });
}

TEST_F(ControllerSimulationTest, APowerFailureTakesTheLastCommitsAtMost) {
  play_schedules(2000, [this](std::uint64_t number) { return play(number, Faults::power_normal); });
}

}  // namespace
}  // namespace kolo::test

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
  std::string play(std::uint64_t number, bool database_lies = false) {
    if (!folder_ || number % kStudiesInAFolder == 0)
      folder_.emplace(memory_folder("kolo-simulation"));
    return ControllerSimulation(number, folder_->path(), database_lies).run();
  }

 private:
  std::optional<TempDir> folder_;
};

TEST_F(ControllerSimulationTest, NothingIsLostDoneTwiceOrLeftBehind) {
  play_schedules(1500, [this](std::uint64_t number) { return play(number); });
}

TEST_F(ControllerSimulationTest, FindsADatabaseThatLies) {
  EXPECT_NE(first_failure(1000, [this](std::uint64_t number) { return play(number, true); }), 0U);
}

}  // namespace
}  // namespace kolo::test

// A study keeps what its search needs of each trial that has ended, and nothing else.
// KOLO_TEST_SCALE=100 makes a million trials of ten thousand.
#include "support/footprint.h"
#include "support/memory_folder.h"
#include "support/scale.h"
#include "unit/tune/simulated_study.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

class ManyTrials : public StudyTest {
 protected:
  ManyTrials() : StudyTest(memory_folder("kolo-many")) {}
};

TEST_F(ManyTrials, CostLittleMemoryAndNoDescriptors) {
  const long trials = std::max(1000, scaled(10'000));
  auto how = minimize("many", "loss");
  how.config = {{"x", tune::uniform(0, 1)}};
  how.num_samples = trials;
  how.loggers = {};
  Footprint half, whole;
  long steps = 0;
  Behaviour behaviour;
  behaviour.saves = Behaviour::Saves::never;
  behaviour.last_iteration = 1;
  behaviour.step = [&](const tune::Value& config, double&, std::int64_t) {
    ++steps;
    if (steps == trials / 2) half = Footprint::now();
    if (steps == trials) whole = Footprint::now();
    return tune::Value{{"loss", config.at_path("x").as_number()}};
  };
  Simulation().run(how, behaviour);
  const std::string text = whole.against(half, trials, "trials");
  fmt::print("{}\n", text);
  EXPECT_EQ(steps, trials);
  EXPECT_EQ(whole.descriptors, half.descriptors) << text;
  constexpr long kBytesOfATrial = 2048, kCache = 16'000'000;  // of SQLite
  EXPECT_LT(whole.bytes, half.bytes + trials / 2 * kBytesOfATrial + kCache) << text;
}

}  // namespace
}  // namespace kolo::test

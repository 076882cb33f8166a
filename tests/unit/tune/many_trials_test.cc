// A study keeps what its search needs of each trial that has ended, and nothing else.
// KOLO_TEST_SCALE=60 makes a million trials of sixteen thousand.
#include <bit>

#include "support/counted_heap.h"
#include "support/footprint.h"
#include "support/memory_folder.h"
#include "support/scale.h"
#include "unit/tune/simulated_study.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

class ManyTrials : public StudyTest {
 protected:
  struct Seen {
    long heap = 0;
    Footprint footprint{};
    static Seen now() { return {heap_bytes(), Footprint::now()}; }
  };

  ManyTrials() : StudyTest(memory_folder("kolo-many")) {}

  [[nodiscard]] tune::Options study_of(long trials) const {
    auto how = minimize("many", "loss");
    how.config = {{"x", tune::uniform(0, 1)}};
    how.num_samples = trials;
    how.loggers = {};
    return how;
  }

  /// The bytes that each trial of the second half has left, and no descriptor.
  static long bytes_of_a_trial(const tune::Options& how, std::int64_t iterations) {
    Seen half, whole;
    long begun = 0;
    Behaviour behaviour;
    behaviour.saves = Behaviour::Saves::never;
    behaviour.last_iteration = iterations;
    behaviour.step = [&](const tune::Value& config, double&, std::int64_t iteration) {
      begun += iteration == 1;
      if (iteration == 1 && begun == how.num_samples / 2) half = Seen::now();
      if (iteration == 1 && begun == how.num_samples) whole = Seen::now();
      return tune::Value{{"loss", config.at_path("x").as_number()}};
    };
    const auto analysis = Simulation().run(how, behaviour);
    const long bytes = (whole.heap - half.heap) / (how.num_samples - how.num_samples / 2);
    fmt::print("{}; {} bytes for each\n",
               whole.footprint.against(half.footprint, how.num_samples, "trials"), bytes);
    EXPECT_EQ(begun, how.num_samples);
    EXPECT_EQ(static_cast<long>(analysis.trials().size()), how.num_samples);
    EXPECT_EQ(whole.footprint.descriptors, half.footprint.descriptors);
    return bytes;
  }
};

/// A number of trials at which lists that grow by doubling are nearly full.
long trials_near(int count) {
  const auto full = static_cast<long>(std::bit_ceil(static_cast<unsigned>(count)));
  return full - full / 50;
}

TEST_F(ManyTrials, CostWhatASamplerRemembersOfThem) {
  EXPECT_LE(bytes_of_a_trial(study_of(trials_near(scaled(16'000))), 1), 200);
}

TEST_F(ManyTrials, CostTheirPlacesInRungsBesides) {
  auto how = study_of(trials_near(4'000));
  how.scheduler = {.name = "asha",
                   .settings = {{"max_t", 4}, {"grace_period", 1}, {"reduction_factor", 2}}};
  EXPECT_LE(bytes_of_a_trial(how, 4), 300);
}

}  // namespace
}  // namespace kolo::test

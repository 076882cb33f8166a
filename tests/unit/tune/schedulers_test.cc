// Schedulers in a study: stopping, pausing with and without checkpoints, populations.
#include <mutex>
#include <set>

#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;

class TuneSchedulers : public StudyTest {};

/// A trial whose loss is its x, with a checkpoint for each report if wanted.
auto curve(bool saves, int epochs = 9) {
  return [saves, epochs](const Config& config, Session& session) {
    int epoch = 0;
    if (auto checkpoint = session.checkpoint()) epoch = std::stoi(read_file(*checkpoint / "epoch"));
    while (++epoch <= epochs) {
      if (saves)
        session.save_checkpoint([&](const std::filesystem::path& directory) {
          write_file_atomically(directory / "epoch", std::to_string(epoch));
        });
      session.report({{"loss", config.at_path("x").as_number() + 1.0 / epoch}, {"epoch", epoch}});
    }
  };
}

void expect_whole(const TrialResult& trial) {
  for (std::size_t i = 0; i < trial.results.size(); ++i)
    EXPECT_EQ(trial.results[i].at_path("epoch").as_integer(), static_cast<std::int64_t>(i) + 1)
        << trial.number;
}

TEST_F(TuneSchedulers, AshaStopsTheBadOnesAndSaysWhy) {
  auto how = minimize("asha", "loss");
  how.total_resources = Resources{.cpu = 1};
  how.config = {{"x", grid_search({1, 5, 2, 9, 0, 7})}};
  how.scheduler = ASHAScheduler({{"max_t", 9}, {"reduction_factor", 3}});
  const auto analysis = tune::run(curve(false), how);
  EXPECT_EQ(analysis.best_config().at_path("x").as_integer(), 0);
  std::size_t stopped = 0;
  for (const auto& trial : analysis.trials()) {
    expect_whole(trial);
    EXPECT_EQ(trial.status, TrialStatus::terminated);
    if (trial.stopped) {
      ++stopped;
      EXPECT_THAT(trial.why, testing::Not(testing::IsEmpty()));
    }
  }
  EXPECT_GE(stopped, 3U);
  EXPECT_EQ(analysis.trials()[4].results.size(), 9U);
}

TEST_F(TuneSchedulers, HyperBandPausesAndGoesOnFromCheckpoints) {
  for (const bool saves : {true, false}) {
    auto how = minimize(saves ? "saved" : "held", "loss");
    how.total_resources = Resources{.cpu = 2};
    how.num_samples = 17;
    how.config = {{"x", uniform(0, 1)}};
    how.scheduler = HyperBandScheduler({{"max_t", 9}, {"reduction_factor", 3}});
    const auto analysis = tune::run(curve(saves), how);
    ASSERT_EQ(analysis.trials().size(), 17U);
    std::set<std::size_t> lengths;
    for (const auto& trial : analysis.trials()) {
      EXPECT_EQ(trial.status, TrialStatus::terminated) << trial.error;
      expect_whole(trial);
      lengths.insert(trial.results.size());
    }
    EXPECT_GT(lengths.size(), 1U);  // some were cut
    EXPECT_EQ(*lengths.rbegin(), 9U);
  }
}

TEST_F(TuneSchedulers, PopulationsCopyCheckpointsOfTheBest) {
  auto how = options("population");
  how.metric = "score";
  how.mode = "max";
  how.total_resources = Resources{.cpu = 2};
  how.num_samples = 6;
  how.config = {{"rate", uniform(0, 1)}};
  how.stop = {{"training_iteration", 20}};
  how.scheduler =
      PopulationBasedTraining({{"rate", uniform(0, 1)}}, {{"perturbation_interval", 4}});
  const auto analysis = tune::run(
      [](const Config& config, Session& session) {
        double score = 0;
        if (auto checkpoint = session.checkpoint())
          score = std::stod(read_file(*checkpoint / "score"));
        for (;;) {
          score += config.at_path("rate").as_number();
          session.save_checkpoint([&](const std::filesystem::path& directory) {
            write_file_atomically(directory / "score", std::to_string(score));
          });
          session.report({{"score", score}});
        }
      },
      how);
  ASSERT_EQ(analysis.trials().size(), 6U);
  int clones = 0;
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.status, TrialStatus::terminated) << trial.error;
    EXPECT_EQ(trial.iteration, 20);
    // A clone's score jumps by more than its rate could add.
    for (std::size_t i = 1; i < trial.results.size(); ++i)
      clones += trial.results[i].at_path("score").as_number() >
                        trial.results[i - 1].at_path("score").as_number() + 1
                    ? 1
                    : 0;
  }
  EXPECT_GT(clones, 0);
}

}  // namespace
}  // namespace kolo::test

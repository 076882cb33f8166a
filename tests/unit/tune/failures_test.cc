#include <atomic>
#include <condition_variable>
#include <mutex>

#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;

class TuneFailures : public StudyTest {};

TEST_F(TuneFailures, AFailedTrialDoesNotEndTheOthers) {
  auto how = minimize("fails", "loss");
  how.config = {{"x", grid_search({1, 2, 3})}};
  how.raise_on_failed_trial = false;
  const auto analysis = tune::run(
      [](const Config& config) {
        if (config.at_path("x").as_integer() == 2) throw std::runtime_error("two is too much");
        return Value{{"loss", config.at_path("x").as_number()}};
      },
      how);
  ASSERT_EQ(analysis.trials().size(), 3U);
  ASSERT_EQ(analysis.errors().size(), 1U);
  EXPECT_EQ(analysis.errors()[0]->error, "two is too much");
  EXPECT_THAT(read_file(analysis.errors()[0]->directory / "error.txt"),
              testing::AllOf(testing::HasSubstr("Failure # 1 (occurred at"),
                             testing::HasSubstr("two is too much")));
  EXPECT_EQ(analysis.best_config().at_path("x").as_integer(), 1);
  how.name = "raises";
  how.raise_on_failed_trial = true;
  const auto fail = [](const Config&) { throw std::runtime_error("oh"); };
  const Error raised = refusal([&] { tune::run(fail, how); });
  EXPECT_THAT(raised.what(), testing::HasSubstr("3 of 3 trials failed"));
  EXPECT_EQ(raised.code(), ErrorCode::trial_failed);
  how.name = "single";
  how.num_samples = 1;
  how.config = {{"x", 1}};
  EXPECT_THAT(refusal([&] { tune::run(fail, how); }).what(),
              testing::HasSubstr("1 of 1 trial failed; the first, "));
  how.name = "fast";
  how.fail_fast = true;
  EXPECT_EQ(refusal([&] { tune::run(fail, how); }).code(), ErrorCode::trial_failed);
}

TEST_F(TuneFailures, ATrialStartsAgainFromItsCheckpoint) {
  auto how = minimize("again", "loss");
  how.max_failures = 2;
  std::atomic<int> runs{0};
  std::vector<std::int64_t> began;
  const auto analysis = tune::run(
      [&](const Config&, Session& session) {
        const int run = ++runs;
        int epoch = 0;
        if (auto checkpoint = session.checkpoint())
          epoch = std::stoi(read_file(*checkpoint / "epoch"));
        began.push_back(session.iteration());
        while (epoch < 6) {
          ++epoch;
          if (epoch == 4 && run == 1) throw std::runtime_error("first");
          if (epoch == 6 && run == 2) throw std::runtime_error("second");
          if (epoch % 2 == 0)
            session.save_checkpoint([&](const std::filesystem::path& directory) {
              write_file_atomically(directory / "epoch", std::to_string(epoch));
            });
          session.report({{"loss", 10 - epoch}, {"epoch", epoch}});
        }
      },
      how);
  const auto& trial = analysis.trials()[0];
  EXPECT_EQ(runs, 3);
  EXPECT_THAT(began, testing::ElementsAre(0, 2, 4));
  EXPECT_EQ(trial.failures, 2);
  EXPECT_EQ(trial.status, TrialStatus::terminated);
  // Each epoch once, though some were run twice.
  ASSERT_EQ(trial.results.size(), 6U);
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(trial.results[i].at_path("epoch").as_integer(), i + 1);
    EXPECT_EQ(trial.results[i].at_path("training_iteration").as_integer(), i + 1);
  }
}

TEST_F(TuneFailures, FailFastEndsTheStudy) {
  auto how = options("fast");
  how.num_samples = 1000;
  how.fail_fast = true;
  std::atomic<int> runs{0};
  EXPECT_THAT(refusal([&] {
                tune::run(
                    [&](const Config&) {
                      if (++runs == 5) throw std::runtime_error("enough");
                    },
                    how);
              }).what(),
              testing::HasSubstr("enough"));
  EXPECT_LT(runs, 50);
}

TEST_F(TuneFailures, AReportWithoutTheMetricFailsTheTrial) {
  auto how = minimize("metric", "loss");
  how.raise_on_failed_trial = false;
  const auto analysis = tune::run([](const Config&) { report({{"los", 1}}); }, how);
  ASSERT_EQ(analysis.errors().size(), 1U);
  EXPECT_THAT(analysis.errors()[0]->error, testing::HasSubstr("no 'loss'; it has los"));
  how.name = "silent";
  const auto silent = tune::run([](const Config&) {}, how);
  EXPECT_THAT(silent.errors()[0]->error, testing::HasSubstr("without reporting 'loss'"));
}

TEST_F(TuneFailures, NumbersThatAreNoneArriveAsSuch) {
  auto how = minimize("nan", "loss");
  how.config = {{"x", grid_search({1, 2})}};
  const auto analysis = tune::run(
      [](const Config& config) {
        const bool bad = config.at_path("x").as_integer() == 1;
        return Value{{"loss", bad ? std::nan("") : 3.0}, {"big", HUGE_VAL}};
      },
      how);
  EXPECT_TRUE(std::isnan(analysis.trials()[0].last_result.at_path("loss").as_number()));
  EXPECT_EQ(analysis.trials()[0].last_result.at_path("big").as_number(), HUGE_VAL);
  EXPECT_EQ(analysis.best_config().at_path("x").as_integer(), 2);
}

TEST_F(TuneFailures, KeepsSoManyCheckpoints) {
  auto how = minimize("keep", "loss");
  how.keep_checkpoints_num = 2;
  how.checkpoint_score_attr = "min-loss";
  const double losses[] = {5, 1, 4, 3, 6};
  const auto analysis = tune::run(
      [&](const Config&, Session& session) {
        for (double loss : losses) {
          session.save_checkpoint([](const std::filesystem::path& directory) {
            write_file_atomically(directory / "x", "x");
          });
          session.report({{"loss", loss}});
        }
      },
      how);
  const auto& trial = analysis.trials()[0];
  ASSERT_EQ(trial.checkpoints.size(), 2U);
  EXPECT_EQ(trial.checkpoints[0].iteration, 2);  // the best
  EXPECT_EQ(trial.checkpoints[1].iteration, 5);  // the newest
  EXPECT_EQ(analysis.best_checkpoint(), trial.checkpoints[0].path);
  int directories = 0;
  for (const auto& entry : std::filesystem::directory_iterator(trial.directory))
    directories += entry.is_directory() ? 1 : 0;
  EXPECT_EQ(directories, 2);
}

TEST_F(TuneFailures, ATrialThatTakesTooLongFails) {
  auto how = minimize("slow", "loss");
  how.config = {{"x", grid_search({1, 2, 3})}};
  how.raise_on_failed_trial = false;
  how.max_concurrent_trials = 1;
  how.trial_time_limit = std::chrono::milliseconds(50);
  how.grace = std::chrono::milliseconds(10);
  struct Gate {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;
  };
  const auto gate = std::make_shared<Gate>();  // the thread that is left behind outlives the test
  const auto analysis = tune::run(
      [gate](const Config& config, Session& session) {
        if (config.at_path("x").as_integer() == 2) {  // hears nothing
          std::unique_lock lock(gate->mutex);
          gate->changed.wait(lock, [&] { return gate->open; });
        }
        session.report({{"loss", 1}});
      },
      how);
  {
    const std::lock_guard lock(gate->mutex);
    gate->open = true;
  }
  gate->changed.notify_all();
  ASSERT_EQ(analysis.errors().size(), 1U);
  EXPECT_THAT(analysis.errors()[0]->error, testing::StartsWith("F_timeout: it ran longer than"));
  EXPECT_EQ(analysis.errors()[0]->config.at_path("x").as_integer(), 2);
}

TEST_F(TuneFailures, ATrialMaySayThatItFailed) {
  auto how = minimize("says", "loss");
  how.raise_on_failed_trial = false;
  const auto analysis = tune::run([](const Config&) { return Value{{"loss", "F_memory"}}; }, how);
  ASSERT_EQ(analysis.errors().size(), 1U);
  EXPECT_EQ(analysis.errors()[0]->error, "F_memory");
}

}  // namespace
}  // namespace kolo::test

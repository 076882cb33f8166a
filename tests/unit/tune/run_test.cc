#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>

#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;

class TuneRun : public StudyTest {};

/// Counts how many trials run at once. Nobody leaves before as many as are expected have met, and
/// a moment for one more to come.
class Crowd {
 public:
  explicit Crowd(int expected) : expected_(expected) {}

  void come_and_go() {
    std::unique_lock lock(mutex_);
    most_ = std::max(most_, ++here_);
    met_.notify_all();
    met_.wait_for(lock, std::chrono::seconds(20), [this] { return most_ >= expected_; });
    met_.wait_for(lock, std::chrono::milliseconds(2), [this] { return most_ > expected_; });
    --here_;
  }
  [[nodiscard]] int most() const { return most_; }

 private:
  const int expected_;
  std::mutex mutex_;
  std::condition_variable met_;
  int here_ = 0, most_ = 0;
};

TEST_F(TuneRun, AGridOfNineTwiceIsEighteenTrials) {
  auto how = options("grid");
  how.num_samples = 2;
  how.config = {{"epochs", grid_search({1, 2, 3})}, {"lr", grid_search({0.1, 0.2, 0.3})}};
  const auto analysis = tune::run(
      [](const Config& config) {
        for (int i = 0; i < config.at_path("epochs").as_integer(); ++i)
          report({{"test", 1}, {"rank", 0}});
      },
      how);
  EXPECT_EQ(analysis.trials().size(), 18U);
  std::multiset<std::pair<std::int64_t, double>> tried;
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.status, TrialStatus::terminated);
    const auto epochs = trial.config.at_path("epochs").as_integer();
    EXPECT_EQ(trial.results.size(), static_cast<std::size_t>(epochs));
    tried.emplace(epochs, trial.config.at_path("lr").as_number());
  }
  for (const auto& pair : tried) EXPECT_EQ(tried.count(pair), 2U);
}

TEST_F(TuneRun, FindsTheBest) {
  auto how = minimize("best", "loss");
  how.num_samples = 30;
  how.config = {{"x", uniform(-10, 10)}, {"const", "hello"}};
  const auto analysis = tune::run(
      [](const Config& config, Session& session) {
        const double x = config.at_path("x").as_number();
        EXPECT_EQ(config.at_path("const").as_string(), "hello");
        for (int i = 1; i <= 3; ++i) session.report({{"loss", x * x + 1.0 / i}});
      },
      how);
  double best = 1e9;
  for (const auto& trial : analysis.trials())
    best = std::min(best, trial.last_result.at_path("loss").as_number());
  EXPECT_EQ(analysis.best_result().at_path("loss").as_number(), best);
  const double x = analysis.best_config().at_path("x").as_number();
  EXPECT_DOUBLE_EQ(x * x + 1.0 / 3, best);
}

TEST_F(TuneRun, BayesianSearchWithAConcurrencyLimitOfFour) {
  auto how = minimize("horovod", "mean_loss");
  how.total_resources = Resources{.cpu = 8};
  how.num_samples = 20;
  how.config = {{"lr", uniform(0.001, 0.1)}};
  how.search_alg = ConcurrencyLimiter(BayesOptSearch(), 4);
  Crowd crowd(4);
  const auto analysis = tune::run(
      [&](const Config& config) {
        crowd.come_and_go();
        const double lr = config.at_path("lr").as_number();
        return Value{{"mean_loss", (lr - 0.03) * (lr - 0.03)}};
      },
      how);
  EXPECT_EQ(analysis.trials().size(), 20U);
  EXPECT_EQ(crowd.most(), 4);
  EXPECT_NEAR(analysis.best_config().at_path("lr").as_number(), 0.03, 0.01);
}

TEST_F(TuneRun, StopsTrialsAtALimit) {
  auto how = minimize("limit", "loss");
  how.num_samples = 3;
  how.config = {{"lr", uniform(0, 1)}};
  how.stop = {{"training_iteration", 20}};
  const auto analysis = tune::run(
      [](const Config&, Session& session) {
        for (int i = 0;; ++i) session.report({{"loss", 100 - i}});
      },
      how);
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.results.size(), 20U);
    EXPECT_EQ(trial.last_result.at_path("training_iteration").as_integer(), 20);
    EXPECT_EQ(trial.status, TrialStatus::terminated);
  }
}

TEST_F(TuneRun, ATrialMayEndPolitely) {
  auto how = options("polite");
  how.stop = {{"training_iteration", 3}};
  bool cleaned = false, refused = false;
  tune::run(
      [&](const Config&, Session& session) {
        while (session.try_report({{"loss", 1}})) EXPECT_FALSE(session.should_stop());
        EXPECT_TRUE(session.should_stop());
        EXPECT_EQ(session.iteration(), 3);
        cleaned = true;
        try {
          session.report({{"loss", 1}});
        } catch (const Stopped&) {
          refused = true;
          throw;
        }
      },
      how);
  EXPECT_TRUE(cleaned && refused);
}

TEST_F(TuneRun, TakesClassesStepByStep) {
  struct Counter final : Trainable {
    void setup(const Config& config) override { rate = config.at_path("rate").as_number(); }
    Value step() override {
      total += rate;
      return Value{{"total", total}, {"done", total >= 5}};
    }
    void save(const std::filesystem::path& directory) override {
      write_file_atomically(directory / "total", std::to_string(total));
    }
    void load(const std::filesystem::path&) override { ADD_FAILURE(); }
    double rate = 0, total = 0;
  };
  auto how = options("classes");
  how.config = {{"rate", grid_search({1, 2})}};
  how.metric = "total";
  how.mode = "max";
  how.checkpoint_freq = 2;
  how.checkpoint_at_end = true;
  const auto analysis = tune::run(trainable<Counter>("counter"), how);
  ASSERT_EQ(analysis.trials().size(), 2U);
  EXPECT_EQ(analysis.trials()[0].results.size(), 5U);
  EXPECT_EQ(analysis.trials()[1].results.size(), 3U);
  const auto& saved = analysis.trials()[0].checkpoints;
  ASSERT_EQ(saved.size(), 3U);  // after 2, 4 and at the end
  EXPECT_EQ(saved.back().iteration, 5);
  EXPECT_EQ(read_file(saved[0].path / "total").substr(0, 3), "2.0");
  EXPECT_EQ(analysis.best_checkpoint(), analysis.trials()[1].checkpoints.back().path);
}

TEST_F(TuneRun, NeverRunsMoreThanTheResourcesAllow) {
  auto how = options("resources");
  how.num_samples = 12;
  how.total_resources = Resources{.cpu = 4, .gpu = 2, .custom = {{"licence", 3}}};
  how.resources_per_trial = {.cpu = 1, .gpu = 0.5, .custom = {{"licence", 1}}};
  Crowd crowd(3);
  tune::run([&](const Config&) { crowd.come_and_go(); }, how);
  EXPECT_EQ(crowd.most(), 3);
}

TEST_F(TuneRun, RefusesWhatCanNeverBe) {
  auto how = options("never");
  how.resources_per_trial.cpu = 5;
  EXPECT_THAT(refusal([&] { tune::run([](const Config&) {}, how); }).what(),
              testing::HasSubstr("needs 5 CPUs, but the study has 4"));
  how = options("never");
  how.metric = "loss";
  EXPECT_EQ(refusal([&] { tune::run([](const Config&) {}, how); }).code(),
            ErrorCode::invalid_argument);
  how = options("never");
  how.search_alg.name = "tpe";
  EXPECT_THAT(refusal([&] { tune::run([](const Config&) {}, how); }).what(),
              testing::HasSubstr("needs a metric"));
  how = options("never");
  how.loggers = {"josn"};
  EXPECT_EQ(refusal([&] { tune::run([](const Config&) {}, how); }).code(), ErrorCode::not_found);
  how = options("a/b");
  EXPECT_EQ(refusal([&] { tune::run([](const Config&) {}, how); }).code(),
            ErrorCode::invalid_argument);
}

TEST_F(TuneRun, ANameIsUsedOnce) {
  auto how = options("once");
  tune::run([](const Config&) {}, how);
  const Error refused = refusal([&] { tune::run([](const Config&) {}, how); });
  EXPECT_EQ(refused.code(), ErrorCode::already_exists);
  EXPECT_THAT(refused.message(),
              testing::AllOf(testing::HasSubstr("there is a study 'once' in "),
                             testing::HasSubstr("set Options::resume to Resume::automatic to "
                                                "continue it, choose another name, or remove it "
                                                "with `kolo delete once`")));
  how.name = "other";
  how.resume = Resume::yes;
  EXPECT_EQ(refusal([&] { tune::run([](const Config&) {}, how); }).code(), ErrorCode::not_found);
}

TEST_F(TuneRun, TheTimeBudgetEndsAStudyWithoutEnd) {
  auto how = options("budget");
  how.num_samples = -1;
  how.time_budget = std::chrono::milliseconds(20);
  // Neither a trial nor the study would end by itself.
  const auto analysis = tune::run(
      [](const Config&, Session& session) {
        for (;;) session.report({{"loss", 1}});
      },
      how);
  ASSERT_FALSE(analysis.trials().empty());
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.status, TrialStatus::terminated);
    EXPECT_EQ(trial.why, "the study is over");
    EXPECT_FALSE(trial.stopped);
  }
}

TEST_F(TuneRun, CallbacksSeeEverything) {
  struct Watcher final : StudyCallback {
    void on_study_begin(const std::string&) override { ++begins; }
    void on_trial_start(const TrialInfo&) override { ++starts; }
    void on_trial_result(const TrialInfo& trial, const Value& result) override {
      EXPECT_EQ(result.at_path("trial_id").as_string(), trial.id);
      ++results;
    }
    void on_trial_complete(const TrialInfo&) override { ++completes; }
    void on_study_end() override { ++ends; }
    int begins = 0, starts = 0, results = 0, completes = 0, ends = 0;
  };
  auto watcher = std::make_shared<Watcher>();
  auto how = options("watched");
  how.num_samples = 5;
  how.callbacks = {watcher};
  tune::run(
      [](const Config&) {
        report({{"a", 1}});
        report({{"a", 2}});
      },
      how);
  EXPECT_EQ(watcher->begins, 1);
  EXPECT_EQ(watcher->starts, 5);
  EXPECT_EQ(watcher->results, 10);
  EXPECT_EQ(watcher->completes, 5);
  EXPECT_EQ(watcher->ends, 1);
}

// A trial goes on while the callbacks are told; what it reports meanwhile is told later.
TEST_F(TuneRun, CallbacksSeeTheTrialAsItWasAtTheResult) {
  struct Watcher final : StudyCallback {
    void on_trial_result(const TrialInfo& trial, const Value& result) override {
      const std::int64_t iteration = result.at_path("training_iteration").as_integer();
      EXPECT_EQ(trial.last_result.at_path("training_iteration").as_integer(), iteration);
      EXPECT_EQ(trial.last_result.at_path("a").as_integer(), iteration);
      EXPECT_EQ(trial.iteration, iteration);
      ++results;
    }
    void on_trial_save(const TrialInfo& trial) override {
      saved[trial.number].insert(trial.checkpoint.value());
    }
    int results = 0;
    std::map<std::int64_t, std::set<std::filesystem::path>> saved;
  };
  auto watcher = std::make_shared<Watcher>();
  auto how = options("watched");
  how.num_samples = 8;
  how.callbacks = {watcher};
  tune::run(
      [](const Config&) {
        for (int i = 1; i <= 200; ++i) {
          if (i % 20 == 0) session().save_checkpoint([](const std::filesystem::path&) {});
          report({{"a", i}});
        }
      },
      how);
  EXPECT_EQ(watcher->results, 8 * 200);
  EXPECT_EQ(watcher->saved.size(), 8U);
  for (const auto& [trial, paths] : watcher->saved) EXPECT_EQ(paths.size(), 10U) << trial;
}

TEST_F(TuneRun, ReportsOutsideOfTrialsAreErrors) {
  EXPECT_EQ(refusal([] { report({{"a", 1}}); }).code(), ErrorCode::failed_precondition);
}

TEST_F(TuneRun, ASamplerOfOnesOwnLearnsFromKnownResults) {
  auto how = minimize("own", "loss");
  how.config = {{"x", choice({1, 2, 3})}};
  how.num_samples = 3;
  how.search_alg.name = "mine";
  how.search_alg.known = {{Value{{"x", 2}}, {0.5}}, {Value{{"x", 3}}, {}}};
  std::size_t told = 0;
  how.search_alg.make = [&told](std::shared_ptr<const search::Space> space,
                                search::SamplerOptions options) {
    // Counts what it was told when it is asked.
    struct Mine final : search::Sampler {
      Mine(std::shared_ptr<const search::Space> space, search::SamplerOptions options,
           std::size_t& told)
          : Sampler("mine", std::move(space), std::move(options)), told_(told) {}
      std::vector<search::Point> propose(std::size_t) override {
        told_ = trials().size() - asked();
        return {search::Point{0}};
      }
      std::size_t& told_;
    };
    return std::make_unique<Mine>(std::move(space), std::move(options), told);
  };
  const auto analysis = tune::run(
      [](const Config& config) {
        return Value{{"loss", config.at_path("x")}};
      },
      how);
  EXPECT_EQ(told, 2U);
  for (const auto& trial : analysis.trials()) EXPECT_EQ(trial.config.at_path("x"), Value(1));
  how.name = "other";
  how.search_alg.known = {{Value{{"x", 7}}, {0.5}}};
  EXPECT_EQ(refusal([&] { tune::run([](const Config&) {}, how); }).code(),
            ErrorCode::invalid_argument);
}

TEST_F(TuneRun, SaysThatThreadsHaveNoFilesOfTheirOwn) {
  auto options = minimize("files", "loss");
  options.log_to_file = true;
  testing::internal::CaptureStderr();
  tune::run([](const tune::Config&) { return tune::Value{{"loss", 1}}; }, options);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("Executor::process"));
}

}  // namespace
}  // namespace kolo::test

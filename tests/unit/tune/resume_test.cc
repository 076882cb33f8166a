// A study whose controller is gone goes on as if nothing had happened.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

#include "store/study_store.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;

class TuneResume : public StudyTest {
 protected:
  /// Runs the study in a child that kills itself in the middle of the n-th report.
  void run_killed(const Options& how, int reports) {
    const pid_t child = ::fork();
    if (child == 0) {
      std::atomic<int> left{reports};
      try {
        tune::run(
            [&](const Config& config, Session& session) {
              train(config, session, [&] {
                if (--left == 0) ::kill(::getpid(), SIGKILL);
              });
            },
            how);
      } catch (...) {
        ::_exit(3);
      }
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status)) << status;
  }

  template <class Tick>
  static void train(const Config& config, Session& session, Tick&& tick) {
    int epoch = 0;
    if (auto checkpoint = session.checkpoint()) epoch = std::stoi(read_file(*checkpoint / "epoch"));
    while (++epoch <= 4) {
      tick();
      session.save_checkpoint([&](const std::filesystem::path& directory) {
        write_file_atomically(directory / "epoch", std::to_string(epoch));
      });
      session.report({{"loss", config.at_path("x").as_number() / epoch}, {"epoch", epoch}});
    }
  }

  Options study(const std::string& name) {
    auto how = minimize(name, "loss");
    how.num_samples = 12;
    how.config = {{"x", uniform(1, 2)}};
    how.search_alg = {.name = "tpe", .settings = {{"n_startup", 4}}};
    how.scheduler = ASHAScheduler({{"max_t", 4}, {"reduction_factor", 2}});
    how.total_resources = Resources{.cpu = 1};  // in a fixed order
    how.resume = Resume::automatic;
    return how;
  }
};

std::vector<std::string> story(const Analysis& analysis) {
  std::vector<std::string> lines;
  for (const auto& trial : analysis.trials()) {
    std::string line = trial.config.to_string() + (trial.stopped ? " stopped" : "");
    for (const auto& result : trial.results) line += " " + result.at_path("loss").to_string();
    lines.push_back(line);
  }
  return lines;
}

TEST_F(TuneResume, GivesTheSameTrialsAsAStudyThatWasNeverInterrupted) {
  const auto whole =
      tune::run([](const Config& config, Session& session) { train(config, session, [] {}); },
                study("whole"));
  const auto how = study("cut");
  for (const int reports : {1, 3, 4, 7, 2}) run_killed(how, reports);
  const auto cut =
      tune::run([](const Config& config, Session& session) { train(config, session, [] {}); }, how);
  EXPECT_EQ(story(cut), story(whole));
  for (const auto& trial : cut.trials()) {
    EXPECT_EQ(trial.status, TrialStatus::terminated);
    // Files are as complete as the database.
    std::ifstream lines(trial.directory / "result.json");
    const auto count = std::count(std::istreambuf_iterator<char>(lines), {}, '\n');
    EXPECT_EQ(count, static_cast<std::ptrdiff_t>(trial.results.size()));
  }
}

TEST_F(TuneResume, AFinishedStudyCanBeExtended) {
  auto how = study("longer");
  std::atomic<int> runs{0};
  const auto count = [&](const Config& config, Session& session) {
    ++runs;
    train(config, session, [] {});
  };
  const auto first = tune::run(count, how);
  EXPECT_EQ(runs, 12);
  tune::run(count, how);
  EXPECT_EQ(runs, 12);  // nothing to do
  how.num_samples = 15;
  const auto longer = tune::run(count, how);
  EXPECT_EQ(runs, 15);
  EXPECT_EQ(longer.trials().size(), 15U);
  auto lines = story(longer);
  lines.resize(12);
  EXPECT_EQ(lines, story(first));
}

TEST_F(TuneResume, ADamagedPointIsSaid) {
  int studies = 0;
  for (const char* point : {"", "0", "0,1,0", "2,1.5", "1e300,1.5", "-1,1.5"}) {
    auto how = study(fmt::format("damaged{}", studies++));
    how.config = {{"kind", choice({"a", "b"})}, {"x", uniform(1, 2)}};
    tune::run([&](const Config& config, Session& session) { train(config, session, [] {}); }, how);
    {
      const auto database = store::open_database(storage_url(how));
      store::StudyStore store(*database);
      auto& change =
          database->prepare("UPDATE trials SET point = $1 WHERE study = $2 AND number = 3");
      change.bind(1, point).bind(2, static_cast<std::int64_t>(store.at(how.name).id)).run();
    }
    how.num_samples = 14;
    const auto error = refusal([&] {
      tune::run([&](const Config& config, Session& session) { train(config, session, [] {}); },
                how);
    });
    EXPECT_EQ(error.code(), ErrorCode::corruption) << point;
    EXPECT_NE(error.message().find("the point of trial 3"), std::string::npos) << error.message();
  }
}

TEST_F(TuneResume, FailedTrialsCanBeTriedAgain) {
  auto how = study("errors");
  how.raise_on_failed_trial = false;
  how.scheduler = {};
  std::atomic<bool> broken{true};
  const auto sometimes = [&](const Config& config, Session& session) {
    if (broken && config.at_path("x").as_number() > 1.5) throw std::runtime_error("no luck");
    train(config, session, [] {});
  };
  const auto first = tune::run(sometimes, how);
  const auto failed = first.errors().size();
  ASSERT_GT(failed, 0U);
  broken = false;
  tune::run(sometimes, how);  // does not touch them
  how.resume = Resume::errored;
  const auto second = tune::run(sometimes, how);
  EXPECT_EQ(second.trials().size(), 12U);
  EXPECT_TRUE(second.errors().empty());
}

TEST_F(TuneResume, TwoControllersAreOneTooMany) {
  auto how = study("twice");
  how.raise_on_failed_trial = false;
  std::string refused;
  tune::run(
      [&](const Config& config, Session& session) {
        if (refused.empty()) {
          auto again = how;
          refused = refusal([&] { tune::run([](const Config&) {}, again); }).what();
        }
        train(config, session, [] {});
      },
      how);
  EXPECT_THAT(refused, testing::HasSubstr("controls it"));
}

/// What a study consists of decides what it may be resumed with.
class TuneResumeOtherwise : public TuneResume {
 protected:
  static void once(const Config& config, Session& session) {
    session.report({{"loss", config.at_path("x").as_number()}, {"other", 1}});
  }
  Options before(const std::string& name) {
    auto how = study(name);
    how.config = {{"x", uniform(1, 2)}, {"kind", choice({"a", "b"})}, {"epochs", 3}};
    how.num_samples = 8;
    how.scheduler = {};
    return how;
  }
  store::StudyRecord record(const Options& how) {
    auto database = store::open_database((scratch_.path() / "kolo.db").string());
    return store::StudyStore(*database).at(how.name);
  }
  /// Such a resume says so, and leaves the study as it was.
  void expect_refused(const Options& how, const std::string& reason) {
    const auto was = record(how);
    const Error error = refusal([&] { tune::run(once, how); });
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
    EXPECT_THAT(error.what(), testing::HasSubstr(reason));
    EXPECT_EQ(record(how).spec, was.spec);
    EXPECT_EQ(record(how).status, was.status);
  }
};

TEST_F(TuneResumeOtherwise, RefusesWhatItsTrialsCannotBear) {
  const auto good = before("own");
  tune::run(once, good);
  ASSERT_EQ(record(good).status, store::StudyStatus::finished);

  auto how = good;
  how.config = {{"momentum", uniform(1, 2)}, {"kind", choice({"a", "b"})}, {"epochs", 3}};
  expect_refused(how, "the parameter 'x' is missing; the parameter 'momentum' is new");
  how.config = {{"x", choice({1, 2})}, {"kind", choice({"a", "b"})}, {"epochs", 3}};
  expect_refused(how, "'x' is now choice(1, 2); it was uniform(1, 2)");
  how.config = {{"x", uniform(1, 2)}, {"kind", choice({"a", "b"})}, {"epochs", 5}};
  expect_refused(how, "the constant 'epochs' is now 5; it was 3");
  how.config = {{"x", uniform(1, 1.01)}, {"kind", choice({"a", "b"})}, {"epochs", 3}};
  expect_refused(how, "of 8 trials lie outside of that space");
  how.config = {{"x", uniform(1, 2)}, {"kind", choice({"a"})}, {"epochs", 3}};
  expect_refused(how, "of 8 trials lie outside of that space");
  how = good;
  how.metric = "other";
  expect_refused(how, "the objective is now other (min); it was loss (min)");
  how = good;
  how.mode = "max";
  expect_refused(how, "the objective is now loss (max); it was loss (min)");
  how = good;
  how.num_samples = 4;
  expect_refused(how, "only 4 trials are asked for, but there are 8 already");

  how = good;
  how.num_samples = 9;
  EXPECT_EQ(tune::run(once, how).trials().size(), 9U);
}

TEST_F(TuneResumeOtherwise, AppliesWhatItsTrialsCanBear) {
  auto how = before("wider");
  const auto first = tune::run(once, how);
  how.config = {{"x", uniform(0, 4)}, {"kind", choice({"c", "b", "a"})}, {"epochs", 3}};
  how.num_samples = 40;
  how.search_alg = {.name = "random"};
  const auto all = tune::run(once, how);
  ASSERT_EQ(all.trials().size(), 40U);
  auto lines = story(all);
  lines.resize(8);
  EXPECT_EQ(lines, story(first));
  bool wider = false, third = false;
  for (const auto& trial : all.trials()) {
    wider = wider || trial.config.at_path("x").as_number() > 2;
    third = third || trial.config.at_path("kind").as_string() == "c";
  }
  EXPECT_TRUE(wider && third);
  // The points in the database mean the same as the configurations beside them.
  const search::Space space(how.config);
  auto database = store::open_database((scratch_.path() / "kolo.db").string());
  store::StudyStore store(*database);
  for (const auto& trial : store.trials(store.at("wider").id))
    EXPECT_TRUE(search::same_point(decode_point(trial.point),
                                   space.point(decode(trial.config, "a configuration"))))
        << trial.point << " " << trial.config;
}

TEST_F(TuneResumeOtherwise, AGridIsCountedThroughAndStaysAsItIs) {
  auto how = before("grid");
  how.search_alg = {};
  how.num_samples = 1;
  how.config = {{"x", grid_search({1, 2, 3})}};
  tune::run(once, how);
  how.config = {{"x", grid_search({1, 2, 3, 4})}};
  expect_refused(how, "counts through them");
}

/// Any scheduler can take over from any other one in the middle of a study.
class TuneResumeScheduler
    : public TuneResume,
      public testing::WithParamInterface<std::tuple<const char*, const char*>> {};

TEST_P(TuneResumeScheduler, TakesOver) {
  const auto [before, after] = GetParam();
  auto how = study(fmt::format("{}-{}", before, after));
  how.config = {{"x", uniform(1, 2)}};
  how.max_concurrent_trials = 4;
  how.total_resources = Resources{.cpu = 4};
  const auto of = [](const std::string& name) {
    Scheduling scheduling{.name = name};
    if (name == "asha" || name == "hyperband") scheduling.settings = {{"max_t", 4}};
    if (name == "pbt") scheduling.settings = {{"perturbation_interval", 1}};
    return scheduling;
  };
  how.scheduler = of(before);
  run_killed(how, 9);
  how.scheduler = of(after);
  const auto all =
      tune::run([](const Config& config, Session& session) { train(config, session, [] {}); }, how);
  EXPECT_EQ(all.trials().size(), 12U);
  for (const auto& trial : all.trials()) EXPECT_EQ(trial.status, TrialStatus::terminated);
}

constexpr const char* kSchedulers[] = {"fifo", "asha", "hyperband", "median_stopping_rule", "pbt"};
INSTANTIATE_TEST_SUITE_P(All, TuneResumeScheduler,
                         testing::Combine(testing::ValuesIn(kSchedulers),
                                          testing::ValuesIn(kSchedulers)));

}  // namespace
}  // namespace kolo::test

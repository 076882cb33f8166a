// A study whose controller is gone goes on as if nothing had happened.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>

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

}  // namespace
}  // namespace kolo::test

// Trials as processes and as rings of ranks: isolation, ends, leftovers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <set>

#include "base/files.h"
#include "base/subprocess.h"
#include "integration/tune/leftovers.h"
#include "store/study_store.h"
#include "tune/study/study_reader.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using tune::Analysis;
using tune::TrialStatus;

class TuneProcess : public testing::Test {
 protected:
  CommandResult run(const std::string& study, const std::string& mode, int samples = 6) {
    return run_command(
        {KOLO_TUNE_PROGRAM, scratch_.path().string(), study, mode, std::to_string(samples)},
        Deadline::after(60s));
  }
  Analysis read(const std::string& study) {
    auto database = store::open_database((scratch_.path() / "kolo.db").string());
    store::StudyStore store(*database);
    return tune::read_study(store, study);
  }
  [[nodiscard]] bool nothing_left() const {
    return all_gone(scratch_.path().string(), Deadline::after(20s));
  }

  TempDir scratch_{"kolo-tune"};
};

TEST_F(TuneProcess, EachTrialIsAProcessOfItsOwn) {
  const auto result = run("plain", "plain");
  EXPECT_EQ(result.output, "6 trials, 0 errors\n") << result.errors;
  const Analysis analysis = read("plain");
  std::set<std::int64_t> pids;
  for (const auto& trial : analysis.trials()) {
    ASSERT_EQ(trial.results.size(), 4U);
    pids.insert(trial.last_result.at_path("pid").as_integer());
    EXPECT_EQ(trial.checkpoints.size(), 4U);
    for (const char* name : {"params.json", "result.json", "progress.csv", "stdout", "stderr"})
      EXPECT_TRUE(std::filesystem::exists(trial.directory / name)) << name;
  }
  EXPECT_EQ(pids.size(), 6U);
  EXPECT_TRUE(nothing_left());
}

TEST_F(TuneProcess, ACrashIsTheTrialsOwn) {
  const auto result = run("crash", "crash", 12);
  ASSERT_TRUE(result.ok()) << result.errors;
  const Analysis analysis = read("crash");
  EXPECT_EQ(analysis.trials().size(), 12U);
  std::size_t crashed = 0;
  for (const auto& trial : analysis.trials()) {
    const bool should = trial.config.at_path("n").as_integer() % 3 == 0;
    crashed += should ? 1 : 0;
    EXPECT_EQ(trial.status, should ? TrialStatus::error : TrialStatus::terminated);
    if (should) {
      EXPECT_THAT(trial.error, testing::HasSubstr("killed by signal 11"));
    }
  }
  EXPECT_GT(crashed, 0U);
}

TEST_F(TuneProcess, ATrialIsARingOfRanks) {
  const auto result = run("ring", "ranks", 3);
  EXPECT_EQ(result.output, "3 trials, 0 errors\n") << result.errors;
  const Analysis analysis = read("ring");
  for (const auto& trial : analysis.trials()) {
    ASSERT_EQ(trial.results.size(), 4U) << trial.error;
    EXPECT_EQ(trial.last_result.at_path("sum").as_number(), 2);
    EXPECT_EQ(trial.checkpoints.size(), 4U);
  }
  EXPECT_TRUE(nothing_left());
}

TEST_F(TuneProcess, ATrialIsAnElasticRing) {
  const auto result = run("elastic", "elastic", 1);
  EXPECT_EQ(result.output, "1 trials, 0 errors\n") << result.errors;
  const Analysis analysis = read("elastic");
  const auto& trial = analysis.trials().front();
  ASSERT_EQ(trial.results.size(), 4U) << trial.error;
  EXPECT_EQ(trial.last_result.at_path("sum").as_number(), 2);  // both processors are its own
  EXPECT_EQ(trial.checkpoints.size(), 4U);
  EXPECT_TRUE(nothing_left());
}

TEST_F(TuneProcess, ALostRankRestartsTheTrialFromItsCheckpoint) {
  const auto result = run("lost", "lostrank", 2);
  EXPECT_EQ(result.output, "2 trials, 0 errors\n") << result.errors;
  const Analysis analysis = read("lost");
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.failures, 1);
    ASSERT_EQ(trial.results.size(), 4U);
    EXPECT_EQ(trial.status, TrialStatus::terminated);
  }
}

TEST_F(TuneProcess, TrialsEndWhenTheyAreTold) {
  const auto result = run("told", "stop", 6);
  ASSERT_TRUE(result.ok()) << result.errors;
  const Analysis analysis = read("told");
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.status, TrialStatus::terminated);
    EXPECT_LE(trial.results.size(), 5U);
  }
}

TEST_F(TuneProcess, NothingOutlivesTheStudy) {
  const auto result = run("orphan", "orphan", 2);
  ASSERT_TRUE(result.ok()) << result.errors;
  EXPECT_TRUE(nothing_left());
}

TEST_F(TuneProcess, ARunIsOverWhenNothingOfItIsLeft) {
  const auto result = run("heir", "heir", 3);
  EXPECT_EQ(result.output, "3 trials, 0 errors\n") << result.errors;
  const Analysis analysis = read("heir");
  for (const auto& trial : analysis.trials()) EXPECT_EQ(trial.failures, 1) << trial.error;
}

TEST_F(TuneProcess, AControllerBeginsWhenNothingOfTheLastOneIsLeft) {
  const auto start = [this] {
    SpawnOptions options;
    options.argv = {KOLO_TUNE_PROGRAM, scratch_.path().string(), "endless", "endless", "1"};
    options.environment = current_environment();
    return spawn(options);
  };
  const auto end = [](pid_t pid) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  };
  const pid_t first = start();
  const Deadline deadline = Deadline::after(30s);
  std::vector<pid_t> all;
  // The controller, the guard of its custodian, the custodian, a trial.
  while (all.size() < 4 && !deadline.passed()) {
    all = family(first);
    ::poll(nullptr, 0, 1);
  }
  ASSERT_EQ(all.size(), 4U);
  // It cannot kill the trial; one that was stopped by a signal would be continued.
  if (::ptrace(PTRACE_SEIZE, all[2], nullptr, nullptr) != 0 ||
      ::ptrace(PTRACE_INTERRUPT, all[2], nullptr, nullptr) != 0) {
    end(first);
    GTEST_SKIP() << "no process may be traced here";
  }
  ::waitpid(all[2], nullptr, __WALL);
  end(first);
  const pid_t second = start();
  // However slow this machine is, a right one passes.
  ::poll(nullptr, 0, 300);
  EXPECT_EQ(family(second).size(), 1U);
  ::ptrace(PTRACE_DETACH, all[2], nullptr, nullptr);
  while (family(second).size() < 4 && !deadline.passed()) ::poll(nullptr, 0, 1);
  EXPECT_EQ(family(second).size(), 4U);
  EXPECT_NE(::kill(all[3], 0), 0) << "two runs of one trial at once";
  end(second);
  EXPECT_TRUE(nothing_left());
}

}  // namespace
}  // namespace kolo::test

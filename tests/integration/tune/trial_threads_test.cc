// Trials with threads and processes of their own, and threads that outlive their study.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "base/files.h"
#include "base/subprocess.h"
#include "kolo/tune.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using tune::Config;
using tune::Session;
using tune::Value;

class TrialThreads : public testing::Test {
 protected:
  tune::Options options(const std::string& name) {
    tune::Options how;
    how.name = name;
    how.local_dir = scratch_.path().string();
    how.metric = "loss";
    how.mode = "min";
    how.config = {{"x", tune::uniform(0, 1)}};
    how.raise_on_failed_trial = false;
    how.verbose = 0;
    return how;
  }
  /// Of a study whose trials are processes.
  CommandResult run_program(const std::string& mode) {
    return run_command({KOLO_TUNE_PROGRAM, scratch_.path().string(), mode, mode, "2"},
                       Deadline::after(30s));
  }

  TempDir scratch_{"kolo-tune"};
};

TEST_F(TrialThreads, SeveralThreadsOfATrialReport) {
  const auto result = run_program("threads");
  EXPECT_EQ(result.output, "2 trials, 0 errors\n") << result.errors;
}

TEST_F(TrialThreads, AForkedProcessDoesNotSpeakForItsTrial) {
  const auto result = run_program("forks");
  EXPECT_EQ(result.output, "2 trials, 0 errors\n") << result.errors;
}

TEST_F(TrialThreads, AForkedProcessReportsBesideItsTrial) {
  const auto result = run_program("copies");
  EXPECT_EQ(result.output, "2 trials, 0 errors\n") << result.errors;
}

/// How a process ended; it is killed if it does not.
int end_of(pid_t child) {
  int status = 0;
  for (int i = 0; i < 1000; ++i) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    std::this_thread::sleep_for(10ms);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, &status, 0);
  return status;
}

TEST_F(TrialThreads, AProcessForkedByAThreadEndsWhereItsTrialWould) {
  auto how = options("forks");
  how.num_samples = 2;
  const auto analysis = tune::run(
      [](const Config&, Session& session) {
        const bool reports = session.trial_id().ends_with('0');
        const pid_t child = ::fork();
        if (child == 0) {
          ::close(STDERR_FILENO);
          if (reports) session.report({{"loss", 0}});
          return;
        }
        const int status = end_of(child);
        session.report({{"loss", WIFEXITED(status) ? WEXITSTATUS(status) : 100}});
      },
      how);
  ASSERT_TRUE(analysis.errors().empty()) << analysis.errors()[0]->error;
  // The one that reported was refused.
  EXPECT_EQ(analysis.trials()[0].last_result.at_path("loss"), Value(1));
  EXPECT_EQ(analysis.trials()[1].last_result.at_path("loss"), Value(0));
}

TEST_F(TrialThreads, AThreadThatIsLeftBehindEndsAtItsNextReport) {
  for (const bool study_goes_on : {true, false}) {
    auto how = options(study_goes_on ? "goes_on" : "ends");
    how.num_samples = study_goes_on ? 2 : 1;
    how.max_concurrent_trials = 1;
    how.trial_time_limit = 50ms;
    how.grace = 10ms;
    struct Gate {
      std::promise<void> open, told;
    };
    const auto gate = std::make_shared<Gate>();  // the thread outlives the study
    static_cast<void>(tune::run(
        [gate](const Config&, Session& session) {
          if (session.trial_id().ends_with('1')) {
            gate->open.set_value();
            session.report({{"loss", 1}});
            return;
          }
          gate->open.get_future().wait();
          try {
            for (;;) session.report({{"loss", 1}});
          } catch (const tune::Stopped&) {
            gate->told.set_value();
            throw;
          }
        },
        how));
    if (!study_goes_on) gate->open.set_value();
    EXPECT_EQ(gate->told.get_future().wait_for(10s), std::future_status::ready) << study_goes_on;
  }
}

TEST_F(TrialThreads, AReportThatIsNestedTooDeeplyFailsItsTrialAlone) {
  auto how = options("deep");
  how.num_samples = 2;
  const auto analysis = tune::run(
      [](const Config&, Session& session) {
        Value deep = 1;
        const int levels = session.trial_id().ends_with('0') ? 1000 : 50;
        for (int i = 0; i < levels; ++i) deep = Value(Value::List{std::move(deep)});
        session.report({{"loss", 1}, {"deep", deep}});
      },
      how);
  ASSERT_EQ(analysis.errors().size(), 1U);
  EXPECT_THAT(analysis.errors()[0]->error, testing::HasSubstr("nested more than 100 deep"));
}

}  // namespace
}  // namespace kolo::test

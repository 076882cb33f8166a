// A study with an executor that follows a script: no threads, no processes, every answer seen.
#include "tune/study/study.h"

#include <set>

#include "tune/study/controller.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

/// Calls of an executor, in words: "start 0", "answer 0 stop", "stop 0", "kill 0", "forget 0".
class ScriptedExecutor final : public TrialExecutor {
 public:
  struct Script {
    std::function<void(Inbox&, const StartOrder&)> on_start{};
    std::function<void(Inbox&, RunId, Answer)> on_answer{};
    std::function<void(Inbox&, RunId)> on_stop{};
    std::function<void(RunId)> on_forget{};
    std::vector<std::string> calls{};
    std::vector<StartOrder> orders{};
  };
  ScriptedExecutor(std::shared_ptr<Inbox> inbox, Script& script)
      : inbox_(std::move(inbox)), script_(script) {}

  void start(StartOrder order) override {
    note("start", order.id);
    script_.orders.push_back(order);
    if (script_.on_start) script_.on_start(*inbox_, order);
  }
  void answer(RunId id, Answer answer) override {
    constexpr const char* kReplies[] = {"proceed", "stop", "pause"};
    note("answer", id, kReplies[static_cast<int>(answer.reply)]);
    if (script_.on_answer) script_.on_answer(*inbox_, id, answer);
  }
  void stop(RunId id) override {
    note("stop", id);
    if (script_.on_stop) script_.on_stop(*inbox_, id);
  }
  void kill(RunId id) override { note("kill", id); }
  void forget(RunId id) override {
    note("forget", id);
    if (script_.on_forget) script_.on_forget(id);
  }
  [[nodiscard]] bool can_kill() const noexcept override { return true; }

 private:
  void note(std::string call, RunId id, const std::string& more = "") {
    script_.calls.push_back(std::move(call) + " " + std::to_string(id.trial) +
                            (more.empty() ? "" : " " + more));
  }
  std::shared_ptr<Inbox> inbox_;
  Script& script_;
};

Message report(RunId id, double loss) {
  Message message{Message::Kind::report, id};
  message.metrics = {{"loss", loss}};
  return message;
}
Message end(RunId id, std::string error = "") {
  Message message{Message::Kind::ended, id};
  message.error = std::move(error);
  return message;
}
Message end_with(RunId id, Value last_words) {
  Message message = end(id);
  message.last_words = std::move(last_words);
  return message;
}

class TuneStudy : public StudyTest {
 protected:
  [[nodiscard]] StudySetup setup(Options how) {
    StudySetup setup;
    how.max_concurrent_trials = 1;
    setup.per_trial = how.resources_per_trial;
    setup.options = std::move(how);
    setup.spec.trainable = "scripted";
    setup.make_executor = [this](const ExecutorPlace& place) {
      directory_ = place.directory;
      return std::make_unique<ScriptedExecutor>(place.inbox, script_);
    };
    return setup;
  }
  Analysis run(Options how) {
    Study study(setup(std::move(how)));
    study.run();
    return study.analysis();
  }

  ScriptedExecutor::Script script_;
  std::filesystem::path directory_;
};

TEST_F(TuneStudy, ALastResultBringsItsCheckpoint) {
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    Message last = end_with(order.id, {{"loss", 1}});
    last.checkpoint = order.directory / "model";
    std::filesystem::create_directories(last.checkpoint);
    inbox.put(std::move(last));
  };
  const auto analysis = run(minimize("concluded", "loss"));
  ASSERT_EQ(analysis.trials().size(), 1U);
  const auto& trial = analysis.trials().front();
  ASSERT_EQ(trial.checkpoints.size(), 1U);
  EXPECT_EQ(trial.checkpoints.front().iteration, 1);
}

TEST_F(TuneStudy, SaysAtTheFirstTrialThatItsMetricIsMissing) {
  for (const bool reports : {true, false}) {
    std::string said;
    script_.on_start = [&](Inbox& inbox, const StartOrder& order) {
      if (order.id.trial == 1) {
        said = testing::internal::GetCapturedStderr();
        testing::internal::CaptureStderr();
      }
      inbox.put(reports ? end_with(order.id, {{"loss", 1}}) : end(order.id));
    };
    auto how = minimize(reports ? "misspelt" : "mute", "los");
    how.num_samples = 3;
    how.raise_on_failed_trial = false;
    testing::internal::CaptureStderr();
    run(how);
    const std::string later = testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, testing::HasSubstr(
                          reports ? "the result has no 'los'; it has loss. Did you mean 'loss'?"
                                  : "it ended without reporting 'los'; no trial has had it yet"));
    EXPECT_THAT(later, testing::Not(testing::HasSubstr("'los'"))) << "it is said once";
  }
}

TEST_F(TuneStudy, HandsItsDirectoryToItsExecutor) {
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    inbox.put(end_with(order.id, {{"loss", 1}}));
  };
  const auto analysis = run(minimize("placed", "loss"));
  EXPECT_EQ(directory_, scratch_.path() / "placed");
  EXPECT_EQ(analysis.directory(), directory_);
  EXPECT_TRUE(std::filesystem::is_directory(directory_));
}

TEST_F(TuneStudy, ALastResultIsRecordedAndNobodyIsAnswered) {
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    inbox.put(end_with(order.id, {{"loss", 0.5}}));
  };
  const auto analysis = run(minimize("last", "loss"));
  EXPECT_THAT(script_.calls, ElementsAre("start 0", "forget 0"));
  ASSERT_THAT(analysis.trials(), SizeIs(1));
  EXPECT_EQ(analysis.trials()[0].status, TrialStatus::terminated);
  EXPECT_EQ(analysis.trials()[0].last_result.at_path("loss").as_number(), 0.5);
  EXPECT_EQ(analysis.trials()[0].iteration, 1);
}

/// The batch system ends the allocation: trials get SIGTERM, too, and one ends before the study is
/// told. It has not failed.
TEST_F(TuneStudy, ATrialThatIsTerminatedWithTheStudyRunsAgain) {
  std::atomic<bool> interrupted = false;
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    Message killed = end(order.id, "the program was killed by signal 15 (Terminated)");
    killed.was_terminated = true;
    inbox.put(std::move(killed));
  };
  script_.on_forget = [&](RunId) { interrupted = true; };
  {
    auto first = setup(minimize("terminated", "loss"));
    first.interrupted = &interrupted;
    Study study(std::move(first));
    study.run();
    EXPECT_TRUE(study.was_interrupted());
    const auto analysis = study.analysis();
    ASSERT_THAT(analysis.trials(), SizeIs(1));
    EXPECT_EQ(analysis.trials()[0].status, TrialStatus::pending);
    EXPECT_EQ(analysis.trials()[0].error, "");
  }
  // Somebody else's SIGTERM is a failure as any other.
  script_.on_forget = {};
  auto how = minimize("terminated", "loss");
  how.resume = Resume::yes;
  how.raise_on_failed_trial = false;
  const auto analysis = run(how);
  ASSERT_THAT(analysis.trials(), SizeIs(1));
  EXPECT_EQ(analysis.trials()[0].status, TrialStatus::error);
}

TEST_F(TuneStudy, ATrialThatIsCutOffWithItsAllocationRunsAgain) {
  int runs = 0;
  script_.on_start = [&](Inbox& inbox, const StartOrder& order) {
    if (++runs == 3) {
      inbox.put(end_with(order.id, {{"loss", 0.5}}));
      return;
    }
    Message cut_off = end(order.id, "the launcher's time is over");
    cut_off.was_cut_off = true;
    inbox.put(std::move(cut_off));
  };
  const auto analysis = run(minimize("cut-off", "loss"));
  EXPECT_THAT(script_.calls,
              ElementsAre("start 0", "forget 0", "start 0", "forget 0", "start 0", "forget 0"));
  ASSERT_THAT(analysis.trials(), SizeIs(1));
  EXPECT_EQ(analysis.trials()[0].status, TrialStatus::terminated);
  EXPECT_EQ(analysis.trials()[0].failures, 0);
  EXPECT_EQ(analysis.trials()[0].error, "");
}

TEST_F(TuneStudy, ATrialThatEndsWithItsLastResultIsNotStopped) {
  auto how = minimize("last-stopped", "loss");
  how.num_samples = 6;
  how.scheduler = ASHAScheduler({{"max_t", 9}, {"grace_period", 1}, {"reduction_factor", 2}});
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    inbox.put(end_with(order.id, {{"loss", double(order.id.trial)}}));
  };
  const auto analysis = run(how);
  for (const auto& trial : analysis.trials()) {
    EXPECT_EQ(trial.status, TrialStatus::terminated);
    EXPECT_FALSE(trial.stopped) << trial.why;
  }
  for (const auto& call : script_.calls) EXPECT_EQ(call.find("answer"), std::string::npos) << call;
}

TEST_F(TuneStudy, AReportAfterTheEndWasToldDoesNotCount) {
  auto how = minimize("stubborn", "loss");
  how.stop = {{"training_iteration", 2}};
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    for (int i = 0; i < 4; ++i) inbox.put(report(order.id, i));
    inbox.put(end(order.id));
  };
  const auto analysis = run(how);
  EXPECT_EQ(analysis.trials()[0].results.size(), 2U);
  // The run is over before it could be answered: its answers are still given, in order.
  EXPECT_THAT(script_.calls, ElementsAre("start 0", "forget 0", "answer 0 proceed", "answer 0 stop",
                                         "answer 0 stop", "answer 0 stop"));
}

TEST_F(TuneStudy, NothingIsActedOnBeforeItIsStored) {
  auto how = minimize("stored", "loss");
  auto reader = store::open_database(storage_url(how));
  store::StudyStore store(*reader);
  std::vector<std::size_t> known;
  script_.on_start = [&](Inbox& inbox, const StartOrder& order) {
    known.push_back(store.trials(store.at("stored").id).size());
    inbox.put(report(order.id, 1));
  };
  script_.on_answer = [&](Inbox& inbox, RunId id, Answer) {
    known.push_back(store.reports_of(store.at("stored").id, 0).size());
    inbox.put(end(id));
  };
  run(how);
  EXPECT_THAT(known, ElementsAre(1, 1));
}

TEST_F(TuneStudy, AFailedRunStartsAgainAsOftenAsFailuresAreAllowed) {
  auto how = minimize("failing", "loss");
  how.max_failures = 2;
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    inbox.put(end(order.id, "broken"));
  };
  const auto analysis = run(how);
  EXPECT_THAT(script_.orders, SizeIs(3));
  EXPECT_EQ(analysis.trials()[0].status, TrialStatus::error);
  EXPECT_EQ(analysis.trials()[0].error, "broken");
}

TEST_F(TuneStudy, WhatAnOlderRunSaysIsNotHeard) {
  auto how = minimize("older", "loss");
  how.max_failures = 1;
  RunId first;
  script_.on_start = [&](Inbox& inbox, const StartOrder& order) {
    if (order.id.run == 1) {
      first = order.id;
      inbox.put(end(order.id, "lost"));
    } else {
      inbox.put(report(first, 99));
      inbox.put(end_with(order.id, {{"loss", 1}}));
    }
  };
  const auto analysis = run(how);
  EXPECT_EQ(analysis.trials()[0].results.size(), 1U);
  EXPECT_EQ(analysis.best_trial().last_result.at_path("loss").as_number(), 1);
}

TEST_F(TuneStudy, AnInterruptedTrialIsRepeatedUpToWhatIsKnown) {
  auto how = minimize("interrupted", "loss");
  std::atomic<bool> interrupted{false};
  script_.on_start = [&](Inbox& inbox, const StartOrder& order) { inbox.put(report(order.id, 1)); };
  script_.on_answer = [&](Inbox&, RunId, Answer) { interrupted = true; };
  script_.on_stop = [](Inbox& inbox, RunId id) { inbox.put(end(id, "terminated by SIGTERM")); };
  {
    auto first = setup(how);
    first.interrupted = &interrupted;
    Study study(std::move(first));
    study.run();
    EXPECT_TRUE(study.was_interrupted());
    EXPECT_EQ(study.analysis().trials()[0].status, TrialStatus::pending);
  }
  how.resume = Resume::yes;
  script_ = {};
  script_.on_start = [](Inbox& inbox, const StartOrder& order) {
    inbox.put(report(order.id, 1));
    inbox.put(report(order.id, 2));
    inbox.put(end(order.id));
  };
  const auto analysis = run(how);
  EXPECT_EQ(analysis.trials()[0].status, TrialStatus::terminated);
  EXPECT_EQ(analysis.trials()[0].results.size(), 2U);
}

TEST_F(TuneStudy, OneControllerAtATime) {
  const auto how = minimize("claimed", "loss");
  Study first(setup(how));
  auto again = how;
  again.resume = Resume::yes;
  EXPECT_EQ(refusal([&] { Study second(setup(again)); }).code(), ErrorCode::failed_precondition);
}

TEST_F(TuneStudy, WrongOptionsLeaveNothingBehind) {
  auto how = minimize("wrong", "loss");
  how.num_samples = 0;
  EXPECT_EQ(refusal([&] { Study study(setup(how)); }).code(), ErrorCode::invalid_argument);
  how = minimize("wrong", "loss");
  how.resources_per_trial.cpu = 64;
  EXPECT_EQ(refusal([&] { Study study(setup(how)); }).code(), ErrorCode::invalid_argument);
  how = minimize("wrong", "loss");
  how.restore = "/nowhere";
  EXPECT_EQ(refusal([&] { Study study(setup(how)); }).code(), ErrorCode::not_found);
  how = minimize("a/b", "loss");
  EXPECT_EQ(refusal([&] { Study study(setup(how)); }).code(), ErrorCode::invalid_argument);
  EXPECT_THAT(std::filesystem::directory_iterator(scratch_.path()),
              testing::Eq(std::filesystem::directory_iterator()));
}

TEST_F(TuneStudy, ATrialThatOverstaysItsTimeFails) {
  auto how = minimize("slow", "loss");
  how.trial_time_limit = std::chrono::milliseconds(1);
  script_.on_stop = [](Inbox& inbox, RunId id) { inbox.put(end(id, "terminated by SIGTERM")); };
  const auto analysis = run(how);
  EXPECT_THAT(script_.calls, ElementsAre("start 0", "stop 0", "forget 0"));
  EXPECT_THAT(analysis.trials()[0].error, testing::StartsWith(std::string(kTimeoutFailure)));
}

}  // namespace
}  // namespace kolo::test

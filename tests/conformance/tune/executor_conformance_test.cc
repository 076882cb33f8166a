// One suite over the whole table of executors, each of them plain and behind a cache.
//
// A trial is written twice: as a function, for the executor whose trials are threads, and as a
// shell script for those whose trials are programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <map>
#include <thread>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "kolo/jobs.h"
#include "tune/executor/executors.h"

namespace kolo::test {
namespace {

using namespace tune;
using namespace std::chrono_literals;
using testing::HasSubstr;

/// What a trial does.
struct Behaviour {
  Runnable::Function function;
  std::string script;
};

const Behaviour kGivesResult{[](const Config& config, Session& session) {
                               session.report({{"loss", config.at_path("x").as_number() / 2}});
                             },
                             "echo $KOLO_PARAM_X | awk '{ print $1 / 2 }'"};
const Behaviour kFails{[](const Config&, Session&) { throw std::runtime_error("it says why"); },
                       "echo it says why >&2; echo it says why; exit 3"};
/// Until it is told to stop.
const Behaviour kStays{[](const Config&, Session& session) {
                         while (!session.should_stop()) std::this_thread::yield();
                       },
                       "exec sleep 1000"};
const Behaviour kIgnoresTheEnd{{}, "trap '' TERM; while :; do sleep 1; done"};
const Behaviour kReportsTwice{[](const Config&, Session& session) {
                                session.report({{"loss", 1}});
                                session.report({{"loss", 2}});
                              },
                              "$KOLO report loss=1 && $KOLO report loss=2"};

struct Kind {
  std::string executor;
  bool cached = false;
};

class ExecutorConformance : public testing::TestWithParam<Kind> {
 protected:
  [[nodiscard]] bool is(std::string_view name) const { return GetParam().executor == name; }
  [[nodiscard]] bool runs_programs() const { return !is("thread"); }
  /// A job tells its result when it has ended.
  [[nodiscard]] bool reports_while_running() const { return !is("jobs"); }

  void make(const Behaviour& behaviour) {
    ExecutorSetup setup;
    setup.place = {inbox_, "study", "study-1", scratch_.path() / "study"};
    std::filesystem::create_directories(setup.place.directory);
    setup.trainable = Runnable(behaviour.function);
    if (runs_programs()) {
      const auto script = scratch_.path() / "trial.sh";
      std::ofstream(script) << "#!/bin/sh\n" << behaviour.script << "\n";
      std::filesystem::permissions(script, std::filesystem::perms::owner_all);
      setup.program = script.string();
      setup.command = [script](const StartOrder&) {
        return TrialCommand{{script.string()}, {"KOLO=" KOLO_BINARY}};
      };
    }
    setup.metric = "loss";
    setup.last_line_reports = true;
    setup.kolo = KOLO_BINARY;
    if (is("jobs")) setup.jobs = start_launcher();
    if (GetParam().cached)
      setup.cache = cache_ = std::make_shared<ResultCache>(std::vector<std::string>{"loss"});
    executor_ = make_executor(GetParam().executor, std::move(setup));
  }

  StartOrder order(std::int64_t trial, std::int64_t run = 1, double x = 3) {
    StartOrder order;
    order.id = {trial, run};
    order.trial_id = "t_" + std::to_string(trial);
    order.trial_name = "trial_" + order.trial_id;
    order.directory = scratch_.path() / "study" / order.trial_id;
    order.config = {{"x", x}, {"model", {{"kind", "deep net"}}}};
    std::filesystem::create_directories(order.directory);
    return order;
  }

  /// The next message, whatever it is.
  Message next() {
    while (waiting_.empty()) {
      waiting_ = inbox_->take(Deadline::after(60s));
      if (waiting_.empty()) throw_error(ErrorCode::timeout, "no message came");
    }
    Message first = std::move(waiting_.front());
    waiting_.erase(waiting_.begin());
    return first;
  }
  /// Answers reports, and returns the end of the run with its last result.
  Message end_of(RunId id, Answer answer = {}) {
    std::optional<Value> result;
    for (;;) {
      Message message = next();
      EXPECT_EQ(message.id.trial, id.trial);
      EXPECT_EQ(message.id.run, id.run);
      if (message.kind == Message::Kind::ended) {
        executor_->forget(id);
        if (!message.last_words) message.last_words = result;
        return message;
      }
      result = message.metrics;
      executor_->answer(id, answer);
    }
  }
  static double loss_of(const Message& end) {
    EXPECT_EQ(end.error, "");
    return end.last_words ? end.last_words->at_path("loss").as_number() : -1;
  }

  JobsPlace start_launcher() {
    const auto folder = scratch_.path() / "jobs";
    jobs::JobDatabase::init(folder);
    launcher_ = std::make_unique<Launcher>(folder);
    return {.database = folder, .workflow = "flow"};
  }

  void TearDown() override {
    executor_.reset();
    launcher_.reset();
  }

  /// Runs the jobs of a database until it goes out of scope.
  struct Launcher {
    explicit Launcher(const std::filesystem::path& database) {
      SpawnOptions options;
      options.argv = {KOLO_BINARY,       "launcher", "--nodes",        "1",
                      "--cpus-per-node", "4",        "--idle-seconds", "100"};
      for (char** entry = environ; *entry != nullptr; ++entry)
        options.environment.emplace_back(*entry);
      options.environment.push_back("KOLO_DB=" + database.string());
      options.die_with_parent = true;
      process = spawn(options);
      process.wait_until_running();
    }
    ~Launcher() {
      ::kill(process.pid(), SIGTERM);
      ::waitpid(process.pid(), nullptr, 0);
    }
    Spawned process;
  };

  TempDir scratch_{"kolo-executor"};
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::shared_ptr<ResultCache> cache_;
  std::unique_ptr<Launcher> launcher_;
  std::unique_ptr<TrialExecutor> executor_;
  std::vector<Message> waiting_;
};

TEST_P(ExecutorConformance, ATrialGivesItsResult) {
  make(kGivesResult);
  executor_->start(order(0));
  EXPECT_EQ(loss_of(end_of({0, 1})), 1.5);
}

TEST_P(ExecutorConformance, ATrialThatFailsSaysWhy) {
  make(kFails);
  executor_->start(order(0));
  const auto end = end_of({0, 1});
  EXPECT_NE(end.error, "");
  EXPECT_FALSE(end.last_words);
  if (!is("jobs")) EXPECT_THAT(end.error, HasSubstr("it says why"));
}

TEST_P(ExecutorConformance, AProgramThatIsNotThereIsAFailedTrial) {
  if (!runs_programs()) GTEST_SKIP() << "threads run no program";
  make(kGivesResult);
  std::filesystem::remove(scratch_.path() / "trial.sh");
  executor_->start(order(0));
  EXPECT_NE(end_of({0, 1}).error, "");
}

TEST_P(ExecutorConformance, AProgramFindsItsConfiguration) {
  if (!runs_programs()) GTEST_SKIP() << "threads get it as an argument";
  make({{},
        "cd \"$KOLO_TRIAL_DIR\" && env | grep '^KOLO_' >environment && "
        "cp \"$KOLO_TRIAL_CONFIG\" config && echo 1"});
  auto first = order(0);
  first.checkpoint = scratch_.path() / "checkpoint";
  first.iteration = 4;
  executor_->start(first);
  EXPECT_EQ(loss_of(end_of({0, 1})), 1);
  const std::string environment = read_file(first.directory / "environment");
  for (const std::string entry :
       {std::string("KOLO_PARAM_X=3"), std::string("KOLO_PARAM_MODEL_KIND=deep net"),
        "KOLO_TRIAL_ID=" + first.trial_id, "KOLO_TRIAL_NAME=" + first.trial_name,
        "KOLO_TRIAL_DIR=" + first.directory.string(),
        "KOLO_TRIAL_CHECKPOINT=" + first.checkpoint->string(),
        std::string("KOLO_TRIAL_ITERATION=4")})
    EXPECT_THAT(environment, HasSubstr(entry));
  EXPECT_THAT(read_file(first.directory / "config"), HasSubstr("\"deep net\""));
}

TEST_P(ExecutorConformance, AReportWaitsForItsAnswer) {
  if (!reports_while_running()) GTEST_SKIP() << "jobs report when they end";
  make(kReportsTwice);
  executor_->start(order(0));
  for (const double loss : {1.0, 2.0}) {
    const Message report = next();
    ASSERT_EQ(report.kind, Message::Kind::report) << report.error;
    EXPECT_EQ(report.metrics.at_path("loss").as_number(), loss);
    EXPECT_TRUE(inbox_->empty());
    executor_->answer(report.id, {});
  }
  EXPECT_EQ(end_of({0, 1}).error, "");
}

TEST_P(ExecutorConformance, AnAnswerEndsATrial) {
  if (!reports_while_running()) GTEST_SKIP() << "jobs report when they end";
  make(kReportsTwice);
  executor_->start(order(0));
  const Message report = next();
  ASSERT_EQ(report.kind, Message::Kind::report) << report.error;
  executor_->answer(report.id, {Reply::stop});
  const Message end = next();  // not the second report
  EXPECT_EQ(end.kind, Message::Kind::ended);
  executor_->forget(end.id);
}

TEST_P(ExecutorConformance, ATrialThatIsAskedToStopEnds) {
  make(kStays);
  executor_->start(order(0));
  executor_->stop({0, 1});
  EXPECT_FALSE(end_of({0, 1}).last_words);
}

TEST_P(ExecutorConformance, ATrialThatDoesNotStopIsKilled) {
  if (!runs_programs()) GTEST_SKIP() << "a thread cannot be killed";
  make(kIgnoresTheEnd);
  EXPECT_TRUE(executor_->can_kill());
  executor_->start(order(0));
  if (!is("jobs")) executor_->stop({0, 1});
  executor_->kill({0, 1});
  EXPECT_NE(end_of({0, 1}).error, "");
}

TEST_P(ExecutorConformance, ATrialStartsAgain) {
  make(kGivesResult);
  for (const std::int64_t run : {1, 2, 3}) {
    executor_->start(order(0, run, double(2 * run)));
    EXPECT_EQ(loss_of(end_of({0, run})), double(run));
  }
}

TEST_P(ExecutorConformance, ManyTrialsRunAtOnce) {
  make(kGivesResult);
  constexpr int kTrials = 8;
  for (int trial = 0; trial < kTrials; ++trial) executor_->start(order(trial, 1, trial + 1));
  std::map<std::int64_t, double> losses;
  for (int ended = 0; ended < kTrials;) {
    Message message = next();
    if (message.kind == Message::Kind::report) {
      losses[message.id.trial] = message.metrics.at_path("loss").as_number();
      executor_->answer(message.id, {});
      continue;
    }
    ++ended;
    EXPECT_EQ(message.error, "");
    if (message.last_words) losses[message.id.trial] = loss_of(message);
    executor_->forget(message.id);
  }
  ASSERT_EQ(losses.size(), std::size_t{kTrials});
  for (const auto& [trial, loss] : losses) EXPECT_EQ(loss, double(trial + 1) / 2);
}

TEST_P(ExecutorConformance, ACacheRunsAConfigurationOnce) {
  make(kGivesResult);
  for (const std::int64_t trial : {0, 1}) {
    executor_->start(order(trial));
    EXPECT_EQ(loss_of(end_of({trial, 1})), 1.5);
  }
  if (cache_) EXPECT_EQ(cache_->used(), 1);
}

std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const auto& executor : executors())
    for (const bool cached : {false, true}) all.push_back({std::string(executor.name), cached});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Table, ExecutorConformance, testing::ValuesIn(kinds()),
                         [](const auto& info) {
                           return info.param.executor + (info.param.cached ? "_cached" : "");
                         });

TEST(Executors, AreKnownByDeepHypersNamesToo) {
  EXPECT_EQ(canonical_executor("balsam"), "jobs");
  EXPECT_EQ(canonical_executor("rayhorovod"), "ranks");
  EXPECT_EQ(canonical_executor("process"), "process");
  EXPECT_THROW(make_executor("cloud", {}), Error);
  EXPECT_THROW(make_executor("process", {}), Error);
  EXPECT_THROW(make_executor("thread", {}), Error);
}

}  // namespace
}  // namespace kolo::test

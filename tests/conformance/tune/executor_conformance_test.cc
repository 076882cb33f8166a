// One suite over the whole table of executors, each of them plain and behind a cache: what a trial
// finds, and what the study hears of it, is the same wherever it runs.
//
// A trial is written twice: as a function, for the executor whose trials are threads, and as a
// shell script for those whose trials are programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
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
using testing::StartsWith;
namespace fs = std::filesystem;

/// What a trial does.
struct Behaviour {
  Runnable::Function function;
  std::string script;
};

const Behaviour kGivesResult{
    [](const Config& config, Session& session) {
      session.report({{"loss", config.at_path("x").as_number() / 2}, {"accuracy", 0.75}});
    },
    "echo loss=$(echo $KOLO_PARAM_X | awk '{ print $1 / 2 }') "
    "accuracy=0.75"};
const Behaviour kFails{[](const Config&, Session&) { throw std::runtime_error("it says why"); },
                       "echo it says why >&2; exit 3"};
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
/// It goes on only if it is not told to end.
const Behaviour kReportsAndStays{[](const Config&, Session& session) {
                                   if (!session.try_report({{"loss", 1}})) return;
                                   while (!session.should_stop()) std::this_thread::yield();
                                 },
                                 "$KOLO report loss=1 && exec sleep 1000"};
const Behaviour kReportsNoNumbers{
    [](const Config&, Session& session) {
      session.report({{"loss", std::nan("")}, {"other", -std::numeric_limits<double>::infinity()}});
    },
    "$KOLO report loss=nan other=-inf"};
const Behaviour kSaves{[](const Config&, Session& session) {
                         session.save_checkpoint([](const fs::path& directory) {
                           std::ofstream(directory / "model") << "weights";
                         });
                         session.report({{"loss", 1}});
                       },
                       "mkdir $KOLO_TRIAL_DIR/saved && printf weights >$KOLO_TRIAL_DIR/saved/model "
                       "&& $KOLO report --checkpoint $KOLO_TRIAL_DIR/saved loss=1"};

const Behaviour kSavesAndEnds{
    [](const Config&, Session& session) {
      session.save_checkpoint(
          [](const fs::path& directory) { std::ofstream(directory / "model") << "weights"; });
      session.report_last({{"loss", 1}});
    },
    "mkdir $KOLO_TRIAL_DIR/saved && printf weights >$KOLO_TRIAL_DIR/saved/model\n"
    "line='{\"kolo\": 1, \"result\": {\"loss\": 1}, \"checkpoint\": \"'$KOLO_TRIAL_DIR/saved'\"}'\n"
    "if [ -n \"$KOLO_TRIAL_REPORTS\" ]; then echo \"$line\" >>$KOLO_TRIAL_REPORTS\n"
    "else echo \"$line\" >&$KOLO_TRIAL_FD; fi"};

/// Runs the jobs of a database until it goes out of scope.
class Launcher {
 public:
  explicit Launcher(const fs::path& database) {
    SpawnOptions options;
    options.argv = {KOLO_BINARY,      "launcher", "--nodes",         "1",  "--cpus-per-node", "8",
                    "--idle-seconds", "100",      "--grace-seconds", "0.2"};
    options.environment = current_environment();
    options.environment.push_back("KOLO_DB=" + database.string());
    options.die_with_parent = true;
    process_ = spawn(options);
  }
  ~Launcher() {
    ::kill(process_, SIGTERM);
    ::waitpid(process_, nullptr, 0);
  }
  Launcher(const Launcher&) = delete;
  Launcher& operator=(const Launcher&) = delete;

 private:
  pid_t process_ = -1;
};

struct Kind {
  std::string executor;
  bool cached = false;
};

class ExecutorConformance : public testing::TestWithParam<Kind> {
 protected:
  [[nodiscard]] bool is(std::string_view name) const { return GetParam().executor == name; }
  [[nodiscard]] bool runs_programs() const { return !is("thread"); }

  void make(const Behaviour& behaviour) {
    fs::create_directories(scratch_.path() / "here");
    setup_.place = {inbox_, "study", "study-1", scratch_.path() / "study", 5s};
    fs::create_directories(setup_.place.directory);
    if (runs_programs()) {
      const auto script = scratch_.path() / "trial.sh";
      std::ofstream(script) << "#!/bin/sh\n" << behaviour.script << "\n";
      fs::permissions(script, fs::perms::owner_all);
      setup_.command = [script](const StartOrder&) {
        return TrialCommand{{script.string()}, {"KOLO=" KOLO_BINARY}};
      };
    } else {
      setup_.trainable = Runnable(behaviour.function);
    }
    setup_.directory = scratch_.path() / "here";
    setup_.metric = "loss";
    setup_.last_line_reports = true;
    setup_.kolo = KOLO_BINARY;
    if (is("jobs")) {
      const auto folder = scratch_.path() / "jobs";
      if (!fs::exists(folder)) jobs::JobDatabase::init(folder);
      if (!launcher_) launcher_ = std::make_unique<Launcher>(folder);
      setup_.jobs = JobsPlace{.database = folder, .workflow = "flow"};
    }
    if (GetParam().cached)
      setup_.cache = cache_ = std::make_shared<ResultCache>(std::vector<std::string>{"loss"});
    executor_ = make_executor(GetParam().executor, setup_);
  }

  StartOrder order(std::int64_t trial, std::int64_t run = 1, double x = 3) {
    StartOrder order;
    order.id = {trial, run};
    order.trial_id = "t_" + std::to_string(trial);
    order.trial_name = "trial_" + order.trial_id;
    order.directory = scratch_.path() / "study" / order.trial_id;
    order.config = {{"x", x}, {"model", {{"kind", "deep net"}}}};
    fs::create_directories(order.directory);
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
  Message next_report() {
    Message report = next();
    EXPECT_EQ(report.kind, Message::Kind::report) << report.error;
    return report;
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
  static double number_in(const Message& end, const std::string& metric = "loss") {
    EXPECT_EQ(end.error, "");
    const Value* value = end.last_words ? end.last_words->find_path(metric) : nullptr;
    return value != nullptr ? value->as_number() : -1;
  }

  TempDir scratch_{"kolo-executor"};
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
  std::shared_ptr<ResultCache> cache_;
  std::unique_ptr<Launcher> launcher_;
  ExecutorSetup setup_;
  std::unique_ptr<TrialExecutor> executor_;
  std::vector<Message> waiting_;
};

TEST_P(ExecutorConformance, ATrialGivesAllItsMetrics) {
  make(kGivesResult);
  executor_->start(order(0));
  const Message end = end_of({0, 1});
  EXPECT_EQ(number_in(end), 1.5);
  EXPECT_EQ(number_in(end, "accuracy"), 0.75);
}

TEST_P(ExecutorConformance, ATrialThatFailsSaysWhy) {
  make(kFails);
  executor_->start(order(0));
  const auto end = end_of({0, 1});
  EXPECT_THAT(end.error, HasSubstr("it says why"));
  if (runs_programs()) {
    EXPECT_THAT(end.error, HasSubstr("exited with status 3"));
  }
  EXPECT_FALSE(end.last_words);
}

TEST_P(ExecutorConformance, AProgramThatIsNotThereIsAFailedTrial) {
  if (!runs_programs()) GTEST_SKIP() << "threads run no program";
  make(kGivesResult);
  fs::remove(scratch_.path() / "trial.sh");
  executor_->start(order(0));
  EXPECT_THAT(end_of({0, 1}).error, HasSubstr("trial.sh"));
}

TEST_P(ExecutorConformance, AProgramFindsItsConfiguration) {
  if (!runs_programs()) GTEST_SKIP() << "a function gets it as an argument";
  make({{},
        "env | grep '^KOLO_' >\"$KOLO_TRIAL_DIR/environment\"; pwd >\"$KOLO_TRIAL_DIR/where\"; "
        "cp \"$KOLO_TRIAL_CONFIG\" \"$KOLO_TRIAL_DIR/config\"; echo mumbles >&2; echo 1"});
  auto first = order(0);
  first.checkpoint = scratch_.path() / "checkpoint";
  first.iteration = 4;
  executor_->start(first);
  EXPECT_EQ(number_in(end_of({0, 1})), 1);
  const std::string environment = read_file(first.directory / "environment");
  for (const std::string& entry :
       {std::string("KOLO_PARAM_X=3.0"), std::string("KOLO_PARAM_MODEL_KIND=deep net"),
        "KOLO_TRIAL_ID=" + first.trial_id, "KOLO_TRIAL_NAME=" + first.trial_name,
        "KOLO_TRIAL_DIR=" + first.directory.string(),
        "KOLO_TRIAL_CHECKPOINT=" + first.checkpoint->string(),
        std::string("KOLO_TRIAL_ITERATION=4"), std::string("KOLO_TRIAL_PROTOCOL=1")})
    EXPECT_THAT(environment, HasSubstr(entry + "\n"));
  EXPECT_THAT(read_file(first.directory / "config"), HasSubstr("\"deep net\""));
  EXPECT_EQ(read_file(first.directory / "where"),
            fs::canonical(scratch_.path() / "here").string() + "\n");
  EXPECT_EQ(read_file(first.directory / "stdout"), "1\n");
  EXPECT_EQ(read_file(first.directory / "stderr"), "mumbles\n");
}

TEST_P(ExecutorConformance, ReportsComeInTheirOrder) {
  make(kReportsTwice);
  executor_->start(order(0));
  for (const double loss : {1.0, 2.0}) {
    const Message report = next_report();
    EXPECT_EQ(report.metrics.at_path("loss").as_number(), loss);
    executor_->answer(report.id, {});
  }
  EXPECT_EQ(end_of({0, 1}).error, "");
}

TEST_P(ExecutorConformance, NumbersThatJsonDoesNotHaveArrive) {
  make(kReportsNoNumbers);
  executor_->start(order(0));
  const Message report = next_report();
  EXPECT_TRUE(std::isnan(report.metrics.at_path("loss").as_number()));
  EXPECT_EQ(report.metrics.at_path("other").as_number(), -std::numeric_limits<double>::infinity());
  executor_->answer(report.id, {});
  EXPECT_EQ(end_of({0, 1}).error, "");
}

TEST_P(ExecutorConformance, AReportMayHaveACheckpoint) {
  make(kSaves);
  executor_->start(order(0));
  const Message report = next_report();
  EXPECT_EQ(read_file(report.checkpoint / "model"), "weights");
  executor_->answer(report.id, {});
  EXPECT_EQ(end_of({0, 1}).error, "");
}

TEST_P(ExecutorConformance, ALastReportComesWithTheEnd) {
  make(kSavesAndEnds);
  executor_->start(order(0));
  const Message end = next();
  ASSERT_EQ(end.kind, Message::Kind::ended);
  EXPECT_EQ(number_in(end), 1);
  EXPECT_EQ(read_file(end.checkpoint / "model"), "weights");
  executor_->forget(end.id);
}

TEST_P(ExecutorConformance, AnAnswerEndsATrial) {
  make(kReportsAndStays);
  executor_->start(order(0));
  executor_->answer(next_report().id, {Reply::stop});
  const Message end = next();
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
  executor_->kill({0, 1});
  EXPECT_NE(end_of({0, 1}).error, "");
}

TEST_P(ExecutorConformance, ATimeLimitIsKept) {
  if (!is("jobs")) GTEST_SKIP() << "the controller keeps it for the others";
  setup_.time_limit = 200ms;
  make(kStays);
  EXPECT_TRUE(executor_->limits_time());
  executor_->start(order(0));
  EXPECT_THAT(end_of({0, 1}).error, StartsWith(std::string(kTimeoutFailure)));
}

TEST_P(ExecutorConformance, ATrialStartsAgain) {
  make(kGivesResult);
  for (const std::int64_t run : {1, 2, 3}) {
    executor_->start(order(0, run, double(2 * run)));
    EXPECT_EQ(number_in(end_of({0, run})), double(run));
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
    if (message.last_words) losses[message.id.trial] = number_in(message);
    executor_->forget(message.id);
  }
  ASSERT_EQ(losses.size(), std::size_t{kTrials});
  for (const auto& [trial, loss] : losses) EXPECT_EQ(loss, double(trial + 1) / 2);
}

TEST_P(ExecutorConformance, ACacheRunsAConfigurationOnce) {
  make(kGivesResult);
  for (const std::int64_t trial : {0, 1}) {
    executor_->start(order(trial));
    EXPECT_EQ(number_in(end_of({trial, 1})), 1.5);
  }
  if (cache_) {
    EXPECT_EQ(cache_->used(), 1);
  }
}

TEST_P(ExecutorConformance, AJobOutlivesItsStudyAndIsFoundAgain) {
  if (!is("jobs")) GTEST_SKIP() << "trials of the others end with their study";
  make({{},
        "$KOLO report loss=1; $KOLO report loss=2; "
        "until [ -e \"$KOLO_TRIAL_DIR/go\" ]; do sleep 0.05; done; $KOLO report loss=3"});
  executor_->start(order(0));
  executor_->answer(next_report().id, {});
  executor_->answer(next_report().id, {});
  executor_.reset();
  executor_ = make_executor(GetParam().executor, setup_);
  auto again = order(0, 2);
  again.iteration = 1;  // the study goes on from the first report
  executor_->start(again);
  const Message second = next_report();
  EXPECT_EQ(second.id.run, 2);
  EXPECT_EQ(second.metrics.at_path("loss").as_number(), 2);
  std::ofstream(again.directory / "go");
  EXPECT_EQ(next_report().metrics.at_path("loss").as_number(), 3);
  EXPECT_EQ(end_of({0, 2}).error, "");
}

TEST_P(ExecutorConformance, ALineThatIsNoReportIsAFailure) {
  if (!is("jobs")) GTEST_SKIP() << "process_test.cc has it for sockets";
  make({{}, "echo nonsense >>\"$KOLO_TRIAL_REPORTS\"; exec sleep 1000"});
  executor_->start(order(0));
  EXPECT_THAT(end_of({0, 1}).error, HasSubstr("cannot be understood"));
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

/// The message of the error that a call throws.
template <class Call>
std::string error_of(Call&& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(Executors, AreKnownByDeepHypersNamesToo) {
  EXPECT_EQ(canonical_executor("balsam"), "jobs");
  EXPECT_EQ(canonical_executor("rayhorovod"), "ranks");
  EXPECT_EQ(canonical_executor("threadPool"), "thread");
  EXPECT_EQ(canonical_executor("process"), "process");
  EXPECT_THAT(error_of([] { canonical_executor("proces"); }), HasSubstr("did you mean 'process'"));
}

TEST(Executors, SayWhatTheyLack) {
  ExecutorSetup setup;
  EXPECT_THAT(error_of([&] { check_executor("process", setup); }), HasSubstr("no program to run"));
  EXPECT_THAT(error_of([&] { check_executor("thread", setup); }), HasSubstr("a program needs"));
  setup.command = [](const StartOrder&) { return TrialCommand{{"true"}}; };
  setup.shape.ranks_per_node = 2;
  EXPECT_THAT(error_of([&] { check_executor("process", setup); }), HasSubstr("2 ranks"));
  EXPECT_EQ(error_of([&] { check_executor("ranks", setup); }), "");
  setup.shape.nodes = 2;
  EXPECT_THAT(error_of([&] { check_executor("ranks", setup); }), HasSubstr("as many hosts"));
  // A number of ranks that changes.
  setup.shape.nodes = 1;
  setup.shape.most_ranks = 4;
  EXPECT_EQ(error_of([&] { check_executor("ranks", setup); }), "");
  setup.shape.cluster = "one";
  EXPECT_THAT(error_of([&] { check_executor("ranks", setup); }),
              HasSubstr("trials on a cluster reserve a fixed number of ranks"));
}

}  // namespace
}  // namespace kolo::test

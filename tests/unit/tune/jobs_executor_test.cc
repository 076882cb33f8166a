// Trials as jobs of a database, without a launcher.
#include "tune/executor/jobs_executor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/log_file.h"
#include "jobs/database/leases.h"
#include "kolo/jobs.h"
#include "store/database.h"

namespace kolo::tune {
namespace {

using namespace std::chrono_literals;
using jobs::Job;
using jobs::JobDatabase;

class JobsExecutorTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path folder() const { return scratch_.path() / "db"; }

  [[nodiscard]] ExecutorSetup setup(const std::string& study = "random-1",
                                    const std::string& program = "/bin/kolo-evaluate") {
    ExecutorSetup setup;
    setup.place = {inbox_, "random", study, scratch_.path()};
    setup.jobs = JobsPlace{.database = folder(), .workflow = "flow", .patience = 20ms};
    setup.command = [this, program](const StartOrder&) {
      ++attempts_;
      attempts_.notify_all();
      return TrialCommand{{program, "x"}};
    };
    return setup;
  }

  [[nodiscard]] StartOrder order(std::int64_t trial) const {
    StartOrder order;
    order.id = {trial, 0};
    order.trial_id = "t_" + std::to_string(trial);
    order.directory = scratch_.path() / order.trial_id;
    order.config = search::Value{{"x", 1}};
    std::filesystem::create_directories(order.directory);
    return order;
  }

  static std::int64_t trial_of(const Job& job) {
    return Json::parse(job.data).at("trial").get<std::int64_t>();
  }
  std::vector<Job> jobs_of(std::int64_t trial) {
    auto found = jobs_.find({.workflow = "flow"});
    std::erase_if(found, [&](const Job& job) { return trial_of(job) != trial; });
    return found;
  }
  /// Waits until the executor has created jobs for the trial.
  std::vector<Job> await_jobs_of(std::int64_t trial) {
    for (const auto deadline = Deadline::after(20s); !deadline.passed();) {
      if (auto found = jobs_of(trial); !found.empty()) return found;
      std::this_thread::yield();
    }
    ADD_FAILURE() << "no job for trial " << trial;
    return {};
  }

  std::atomic<int> attempts_{0};  // to make a job
  TempDir scratch_;
  JobDatabase jobs_ = JobDatabase::init(folder());
  std::shared_ptr<Inbox> inbox_ = std::make_shared<Inbox>();
};

TEST_F(JobsExecutorTest, ABusyDatabaseMakesNoSecondJobForATrial) {
  // An earlier session has created the job of trial 1.
  jobs_.set_application({.name = "other", .executable = "/bin/true"});
  Job earlier;
  earlier.name = "task1", earlier.workflow = "flow", earlier.application = "other";
  earlier.data = R"({"search": "random-1", "trial": 1})";
  jobs_.create(earlier);
  const auto executor = make_jobs_executor(setup());

  const auto writer = store::open_database((folder() / "kolo.db").string());
  writer->begin(store::Locking::all);
  executor->start(order(2));
  executor->start(order(1));
  // The first of these attempts may have begun without trial 1, and the last is not over.
  for (int attempts = 0; attempts < 3;) {
    attempts_.wait(attempts);
    attempts = attempts_;
  }
  writer->rollback();
  EXPECT_EQ(await_jobs_of(2).size(), 1U);
  EXPECT_EQ(jobs_of(1).size(), 1U);
}

TEST_F(JobsExecutorTest, AnErrorThatDoesNotPassEndsTheTrial) {
  const auto executor = make_jobs_executor(setup());
  jobs_.remove_application("trials-random-1");
  executor->start(order(1));
  const auto messages = inbox_->take(Deadline::after(20s));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].kind, Message::Kind::ended);
  EXPECT_NE(messages[0].error.find("trials-random-1"), std::string::npos);
}

TEST_F(JobsExecutorTest, ADatabaseThatNeverComesBackEndsTheTrials) {
  auto impatient = setup();
  impatient.jobs->retry_limit = 0ms;
  const auto executor = make_jobs_executor(std::move(impatient));
  const auto writer = store::open_database((folder() / "kolo.db").string());
  writer->begin(store::Locking::all);
  executor->start(order(1));
  const auto messages = inbox_->take(Deadline::after(20s));
  writer->rollback();
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].kind, Message::Kind::ended);
  EXPECT_NE(messages[0].error.find("the job database failed: "), std::string::npos);
}

TEST_F(JobsExecutorTest, AnOrderThatCannotBeMadeIntoAJobEndsItsTrialAlone) {
  auto fails = setup();
  fails.command = [](const StartOrder& order) {
    if (order.id.trial == 1) throw std::runtime_error("no such program");
    return TrialCommand{{"/bin/kolo-evaluate", "x"}};
  };
  const auto executor = make_jobs_executor(std::move(fails));
  executor->start(order(1));
  executor->start(order(2));
  EXPECT_EQ(await_jobs_of(2).size(), 1U);
  const auto messages = inbox_->take(Deadline::after(20s));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].id, order(1).id);
  EXPECT_EQ(messages[0].error, "no such program");
}

TEST_F(JobsExecutorTest, ABusyDatabaseLosesNoEndOfATrial) {
  const auto executor = make_jobs_executor(setup());
  executor->start(order(1));
  const auto job = await_jobs_of(1).at(0).id;
  const auto log_path = scratch_.path() / "log";
  const log::File log(log_path);
  const auto writer = store::open_database((folder() / "kolo.db").string());
  writer->begin(store::Locking::all);
  executor->kill(order(1).id);
  const auto deadline = Deadline::after(20s);
  while (read_file(log_path).find("the job database fails") == std::string::npos) {
    ASSERT_FALSE(deadline.passed());
    std::this_thread::yield();
  }
  writer->rollback();
  const auto messages = inbox_->take(Deadline::after(20s));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].kind, Message::Kind::ended);
  EXPECT_EQ(jobs_.job(job).state, jobs::JobState::user_killed);
}

TEST_F(JobsExecutorTest, StudiesOfProgramsWithOneNameRunEachItsOwn) {
  jobs_.set_application({.name = "train.sh", .executable = "/home/user/train.sh"});
  const auto first = make_jobs_executor(setup("random-1", "/a/train.sh"));
  const auto second = make_jobs_executor(setup("random-2", "/b/train.sh"));
  first->start(order(1));
  second->start(order(2));
  EXPECT_EQ(await_jobs_of(1).at(0).args, "/a/train.sh x");
  EXPECT_EQ(await_jobs_of(2).at(0).args, "/b/train.sh x");
  EXPECT_EQ(jobs_.application("train.sh").executable, "/home/user/train.sh");
}

TEST_F(JobsExecutorTest, LeavesAnApplicationOfTheUserAlone) {
  jobs_.set_application({.name = "trials-random-1", .executable = "/bin/mine"});
  try {
    make_jobs_executor(setup());
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::already_exists) << error.message();
  }
  EXPECT_EQ(jobs_.application("trials-random-1").executable, "/bin/mine");
}

/// As a launcher moves a job that runs out of time.
void time_out(JobDatabase& jobs, jobs::JobId id) {
  for (const char* state : {"STAGED_IN", "PREPROCESSED", "RUNNING", "RUN_TIMEOUT", "FAILED"})
    jobs.modify(id, "state", state);
}

// More than the study can take at once.
TEST_F(JobsExecutorTest, ReadsReportsToTheEndOfTheJob) {
  const auto executor = make_jobs_executor(setup());
  executor->start(order(1));
  const auto job = await_jobs_of(1).at(0);
  constexpr std::size_t kReports = 20'000;
  std::string lines;
  for (std::size_t i = 0; i < kReports; ++i) lines += "{\"loss\": 1}\n";
  write_file_atomically(Json::parse(job.data).at("reports").get<std::string>(), lines);
  time_out(jobs_, job.id);
  std::vector<Message> messages;
  for (const auto deadline = Deadline::after(20s); !deadline.passed();) {
    for (auto& message : inbox_->take(deadline)) messages.push_back(std::move(message));
    if (!messages.empty() && messages.back().kind == Message::Kind::ended) break;
  }
  ASSERT_EQ(messages.size(), kReports + 1);
  EXPECT_EQ(messages.back().kind, Message::Kind::ended);
}

TEST_F(JobsExecutorTest, TheEndOfAnAllocationIsNoFailureOfTheTrial) {
  auto limited = setup();
  limited.time_limit = 1h;
  auto executor = make_jobs_executor(std::move(limited));
  executor->start(order(1));
  time_out(jobs_, await_jobs_of(1).at(0).id);
  auto messages = inbox_->take(Deadline::after(20s));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_TRUE(messages[0].was_cut_off);
  executor.reset();
  limited = setup();
  limited.time_limit = 1ns;  // which is over
  executor = make_jobs_executor(std::move(limited));
  executor->start(order(2));
  time_out(jobs_, await_jobs_of(2).at(0).id);
  messages = inbox_->take(Deadline::after(20s));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_FALSE(messages[0].was_cut_off);
  EXPECT_FALSE(messages[0].error.empty());
}

class JobsExecutorInAJobTest : public JobsExecutorTest {
 protected:
  /// Of a study that is a job itself.
  ExecutorSetup setup_in_job() {
    jobs_.set_application({.name = "search", .executable = "/bin/search"});
    Job own;
    own.name = "search", own.workflow = "flow", own.application = "search",
    own.data = R"({"trial": -1})";
    auto in_job = setup();
    own_ = jobs_.create(own);
    in_job.jobs->study_job = static_cast<std::int64_t>(own_);
    return in_job;
  }
  jobs::JobId own_{};
};

TEST_F(JobsExecutorInAJobTest, JobsOutliveAStudyThatIsInterrupted) {
  const auto executor = make_jobs_executor(setup_in_job());
  EXPECT_TRUE(jobs_.job(own_).yields);
  executor->start(order(1));
  const auto job = await_jobs_of(1).at(0).id;
  executor->study_is_interrupted();
  executor->stop(order(1).id);
  const auto messages = inbox_->take(Deadline::after(20s));
  ASSERT_EQ(messages.size(), 1U);
  EXPECT_EQ(messages[0].kind, Message::Kind::ended);
  EXPECT_FALSE(jobs::is_end(jobs_.job(job).state));
}

TEST_F(JobsExecutorInAJobTest, SaysAtOnceThatNoTrialCanEverRun) {
  const jobs::Leases launcher(jobs_, 60, R"({"nodes": 1, "cores": 4, "gpus": 1})");
  auto large = setup_in_job();
  large.shape.gpus = 2;
  try {
    make_jobs_executor(std::move(large));
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition);
    EXPECT_NE(error.message().find("it needs 2 GPUs on a node, and nodes have 1"),
              std::string::npos)
        << error.message();
  }
  // A share of the only node that the search keeps is in the way of trials that need it whole.
  auto packed = setup_in_job();
  packed.shape.trials_per_node = 1;
  jobs_.modify(own_, "node_packing_count", "2");
  EXPECT_THROW(make_jobs_executor(packed), Error);
  jobs_.modify(own_, "node_packing_count", "1");
  EXPECT_NE(make_jobs_executor(packed), nullptr);
}

}  // namespace
}  // namespace kolo::tune

// Submissions that fail although the batch system has taken the job.
#include "jobs/database/queued_launches.h"

#include <gmock/gmock.h>

#include <functional>
#include <stdexcept>

#include "base/errors.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "jobs/database/launch_claim.h"

namespace kolo::jobs {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// What a script prints; what it would start is `echo`.
std::string run(const fs::path& script) {
  const auto result = run_command({"env", "SLURM_JOB_ID=888", "bash", script.string()},
                                  Deadline::after(std::chrono::seconds(20)));
  return result.ok() ? result.output : describe_wait_status(result.status);
}

/// Takes every job and says what a test wants.
class Slow final : public launch::BatchSystem {
 public:
  [[nodiscard]] std::string_view name() const override { return "slurm"; }
  [[nodiscard]] std::string_view script_template() const override {
    return "#!/bin/bash\nset -eu\n{{commands}}\n";
  }
  [[nodiscard]] std::string directive(std::string_view, const std::string&) const override {
    return {};
  }
  std::string submit(const fs::path& script) override {
    taken = script;
    return answer();
  }
  launch::BatchAnswer status(const std::vector<std::string>&) override { return {}; }
  void cancel(const std::vector<std::string>&) override {}

  fs::path taken;
  std::function<std::string()> answer = [] { return "1"; };
};

class Submission : public testing::Test {
 protected:
  Submission() {
    request_.kolo = "echo";
    batch_.answer = [this]() -> std::string {
      if (begins_) output_ = run(batch_.taken);
      throw_error(ErrorCode::unavailable, "sbatch did not end in time");
    };
  }
  std::string failure() {
    try {
      submit_launch(jobs_, batch_, request_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable);
      return error.message();
    }
    return {};
  }
  std::vector<QueuedLaunch> launches() {
    std::string trouble;
    return queued_launches(jobs_, false, trouble);
  }

  TempDir scratch_;
  JobDatabase jobs_ = JobDatabase::init(scratch_.path() / "db");
  LaunchRequest request_;
  Slow batch_;
  bool begins_ = false;  // before the command that submits it has failed
  std::string output_;
};

TEST_F(Submission, ThatFailedRunsNothingLater) {
  EXPECT_THAT(failure(), HasSubstr("did not end in time; no launcher will run"));
  EXPECT_EQ(launches().at(0).state, "submit-failed");
  EXPECT_THAT(run(batch_.taken), Not(HasSubstr("launcher --job-mode")));
  EXPECT_THAT(run(batch_.taken), HasSubstr("this launch was given up"));
  // The next one is another one.
  batch_.answer = [] { return "2"; };
  EXPECT_EQ(submit_launch(jobs_, batch_, request_).scheduler_id, "2");
  EXPECT_THAT(run(batch_.taken), HasSubstr("launcher --job-mode"));
}

TEST_F(Submission, CountsIfItsJobHasBegun) {
  begins_ = true;
  EXPECT_THAT(failure(), IsEmpty());
  EXPECT_THAT(output_, HasSubstr("launcher --job-mode"));
  EXPECT_EQ(launches().at(0).state, "submitted");
  EXPECT_EQ(launches().at(0).scheduler_id, "888");
  EXPECT_THAT(run(batch_.taken), HasSubstr("launcher --job-mode")) << "it was started again";
}

TEST_F(Submission, ThatFailedLeavesNoJobBehind) {
  jobs_.set_application({.name = "a", .executable = "true"});
  Job job;
  job.name = "search";
  job.application = "a";
  request_.jobs = {jobs_.create(job)};
  EXPECT_THAT(failure(), HasSubstr("no launcher will run"));
  EXPECT_THAT(jobs_.find({}), IsEmpty());
}

TEST_F(Submission, ThatCannotBeWithdrawnSaysSo) {
  batch_.answer = [this]() -> std::string {
    fs::rename(jobs_.folder() / "qsubmit", scratch_.path() / "elsewhere");
    throw_error(ErrorCode::unavailable, "sbatch did not end in time");
  };
  EXPECT_THAT(failure(), HasSubstr("it may have taken the job, which cannot be withdrawn"));
}

TEST_F(Submission, ThatWasCutShortCanBeTakenBack) {
  batch_.answer = []() -> std::string { throw std::runtime_error("as if it had been killed"); };
  EXPECT_THROW(submit_launch(jobs_, batch_, request_), std::runtime_error);
  EXPECT_EQ(launches().at(0).state, "pending-submission");
  EXPECT_EQ(cancel_launches(jobs_, {1}), 1);
  EXPECT_EQ(launches().at(0).state, "submit-failed");
  EXPECT_THAT(run(batch_.taken), HasSubstr("this launch was given up"));
  EXPECT_EQ(cancel_launches(jobs_, {1}), 0);
}

TEST_F(Submission, IsNotHeldUpByAnEarlierDatabaseInItsFolder) {
  write_file_atomically(claim_of_launch(jobs_.folder(), "qlaunch1"), "withdrawn\n");
  batch_.answer = [] { return "1"; };
  submit_launch(jobs_, batch_, request_);
  EXPECT_THAT(run(batch_.taken), HasSubstr("launcher --job-mode"));
}

}  // namespace
}  // namespace kolo::jobs

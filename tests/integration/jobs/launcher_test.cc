// A launcher with real tasks on this machine.
#include "jobs/pilot/launcher.h"

#include <gmock/gmock.h>
#include <signal.h>

#include <charconv>

#include "base/files.h"

namespace kolo::jobs {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class LauncherTest : public testing::Test {
 protected:
  JobId add(const std::string& script) {
    jobs_.set_application({.name = "sh", .executable = "/bin/sh"});
    Job job;
    job.name = "job", job.workflow = "flow", job.application = "sh";
    job.args = "-c '" + script + "'";
    return jobs_.create(job);
  }
  LauncherSummary launch(int nodes = 1) {
    LauncherOptions options;
    options.idle_seconds = 0.2;
    options.grace = 1s;
    for (int i = 0; i < nodes; ++i)
      options.nodes.push_back(
          {.name = "n" + std::to_string(i), .host = "localhost", .command = {}, .cores = 2});
    return run_launcher(jobs_, options);
  }
  std::string output_of(JobId id) { return read_file(jobs_.folder_of(jobs_.job(id)) / "job.out"); }
  std::string last_reason(JobId id, JobState state) {
    std::string reason;
    for (const auto& entry : jobs_.history(id))
      if (entry.state == state) reason = entry.reason;
    return reason;
  }

  TempDir scratch_;
  JobDatabase jobs_ = JobDatabase::init(scratch_.path() / "db");
};

TEST_F(LauncherTest, RunsJobsAndKeepsTheirOutput) {
  const JobId good = add("echo at $KOLO_JOB_ID"), bad = add("echo oh no >&2; exit 3");
  const auto summary = launch(2);
  EXPECT_EQ(summary.finished, 1);
  EXPECT_EQ(summary.failed, 1);
  EXPECT_EQ(output_of(good), "at " + std::to_string(static_cast<std::int64_t>(good)) + "\n");
  EXPECT_EQ(jobs_.job(bad).return_code, 3);
  EXPECT_THAT(last_reason(bad, JobState::run_error), HasSubstr("oh no"));
}

TEST_F(LauncherTest, AProgramThatDoesNotExistFailsWithTheReason) {
  jobs_.set_application({.name = "none", .executable = "/nowhere/program"});
  Job job;
  job.name = "job", job.workflow = "flow", job.application = "none";
  const JobId id = jobs_.create(job);
  launch();
  EXPECT_EQ(jobs_.job(id).state, JobState::failed);
  EXPECT_THAT(last_reason(id, JobState::run_error), HasSubstr("/nowhere/program"));
}

TEST_F(LauncherTest, WhatAJobLeavesInASessionOfItsOwnEndsWithTheJob) {
  const JobId id = add("setsid sleep 300 >/dev/null 2>&1 & echo $!");
  launch();
  EXPECT_EQ(jobs_.job(id).state, JobState::job_finished);
  const std::string text = output_of(id);
  pid_t pid = 0;
  std::from_chars(text.data(), text.data() + text.size(), pid);
  ASSERT_GT(pid, 0);
  EXPECT_NE(::kill(pid, 0), 0) << "process " << pid << " outlives its job";
}

}  // namespace
}  // namespace kolo::jobs

// A pilot in memory: time is given, tasks are only noted, and the database may lose answers.
#pragma once

#include <gmock/gmock.h>

#include <optional>

#include "base/errors.h"
#include "base/files.h"
#include "jobs/database/body.h"
#include "jobs/pilot/pilot.h"
#include "support/flaky_database.h"
#include "support/given_clock.h"
#include "support/memory_folder.h"

namespace kolo::jobs {

using namespace std::chrono_literals;

/// Statuses as from waitpid.
inline constexpr int exited(int code) { return code << 8; }
inline constexpr int kKilledBySigterm = 15;

class NotedTasks final : public TaskHost {
 public:
  struct Started {
    int node = 0;
    exec::Task task;
  };
  void start(int node, const exec::Task& task) override { started.push_back({node, task}); }
  void end(int /*node*/, exec::TaskId task) override { ended.push_back(task); }
  void kill(int /*node*/, exec::TaskId task) override { killed.push_back(task); }

  std::vector<Started> started;
  std::vector<exec::TaskId> ended, killed;
};

class PilotTest : public testing::Test {
 protected:
  PilotTest() {
    auto& body = body_of(jobs_);
    auto flaky = std::make_unique<test::FlakyDatabase>(std::move(body.store));
    database_ = flaky.get();
    body.store = std::move(flaky);
    body.clock = body.lease_clock = &clock_;
    jobs_.set_application({.name = "app", .executable = "/bin/app"});
  }

  /// With so many nodes of four cores each.
  Pilot& begin(int nodes = 1) {
    std::vector<Node> all;
    for (int i = 0; i < nodes; ++i) {
      const std::string name = "n" + std::to_string(i);
      options_.nodes.push_back({.name = name, .host = name, .command = {}});
      all.push_back({.name = name, .cores = 4});
    }
    return pilot_.emplace(jobs_, options_, all, tasks_, clock_, clock_.now() + 24h, summary_);
  }

  template <class Change>
  JobId add(Change&& change) {
    Job job;
    job.name = "job", job.workflow = "flow", job.application = "app";
    change(job);
    return jobs_.create(job);
  }
  JobId add() {
    return add([](Job&) {});
  }

  /// All that is to be done now, and what is written together with it.
  void work() {
    for (int i = 0; i < 4; ++i) {
      pilot_->turn();
      clock_.advance(20ms);
    }
  }
  void end_task(std::size_t place, std::optional<int> status, const std::string& text = {}) {
    pilot_->task_ended(tasks_.started.at(place).task.id, status, text);
    work();
  }

  /// What a turn throws, which it must.
  Error error_of_turn() {
    try {
      pilot_->turn();
    } catch (const Error& error) {
      return error;
    }
    return Error(ErrorCode::internal, "nothing was thrown");
  }

  JobState state(JobId id) { return jobs_.job(id).state; }
  std::string path_of(JobId id) {
    std::string path;
    for (const auto& entry : jobs_.history(id))
      path += (path.empty() ? "" : " ") + std::string(to_string(entry.state));
    return path;
  }
  std::string last_reason(JobId id, JobState state) {
    std::string reason;
    for (const auto& entry : jobs_.history(id))
      if (entry.state == state) reason = entry.reason;
    return reason;
  }

  static constexpr const char* kWholePath =
      "CREATED READY STAGED_IN PREPROCESSED RUNNING RUN_DONE POSTPROCESSED JOB_FINISHED";

  TempDir scratch_{test::memory_folder("kolo-pilot")};
  JobDatabase jobs_ = JobDatabase::init(scratch_.path() / "db");
  test::FlakyDatabase* database_ = nullptr;
  test::GivenClock clock_;
  LauncherOptions options_;
  NotedTasks tasks_;
  LauncherSummary summary_;
  std::optional<Pilot> pilot_;
};

}  // namespace kolo::jobs

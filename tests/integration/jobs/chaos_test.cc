// Launchers, tasks and the database server are killed at random while a workflow with dependencies
// runs. Every job must finish exactly once, along legal states, and nothing may be stuck.
//
// KOLO_CHAOS_JOBS and KOLO_CHAOS_KILLS make it larger than what fits into a test suite.
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/wait.h>

#include <map>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "conformance/store/postgres_server.h"
#include "integration/run/kolo_process.h"
#include "kolo/jobs.h"
#include "kolo/random.h"

namespace kolo::test {
namespace {

using namespace std::chrono_literals;
using jobs::Job;
using jobs::JobDatabase;
using jobs::JobId;
using jobs::JobState;

int from_environment(const char* name, int fallback) {
  const auto text = environment(name);
  return text ? std::stoi(*text) : fallback;
}

/// Tries again while the server is down.
template <class Call>
auto patiently(Call&& call) {
  for (int tries = 0;; ++tries) {
    try {
      return call();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::unavailable || tries > 200) throw;
      std::this_thread::sleep_for(50ms);
    }
  }
}

class Chaos : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int kLaunchers = 2;

  void SetUp() override {
    std::string url;
    if (GetParam() == "postgresql") {
      server_ = PostgresServer::start_new();
      if (!server_) GTEST_SKIP() << "PostgreSQL is not installed here";
      url = server_->url();
    }
    jobs_ = std::make_unique<JobDatabase>(JobDatabase::init(scratch_.path() / "db", url));
    jobs_->set_application({.name = "mark", .executable = "sh -c 'echo ran; sleep 0.01'"});
    for (int i = 0; i < kLaunchers; ++i) launchers_.push_back(start());
  }

  std::unique_ptr<KoloProcess> start() {
    return std::make_unique<KoloProcess>(
        std::vector<std::string>{"launcher", "--nodes", "2", "--lease-seconds", "1", "--persistent",
                                 "--grace-seconds", "0.5"},
        KoloProcess::Options{.environment = {"KOLO_DB=" + jobs_->folder().string()},
                             .directory = {},
                             .close_output = false});
  }

  /// Each job waits for up to two earlier ones.
  void create(int count, Random& random) {
    std::vector<JobId> ids;
    for (int i = 0; i < count; ++i) {
      Job job;
      job.name = fmt::format("j{}", i);
      job.workflow = "CHAOS";
      job.application = "mark";
      job.node_packing_count = 1 + static_cast<int>(random.below(2));
      // Tasks are killed too: that is an error of the task, and not its fault.
      job.max_retries = 1000;
      for (int parents = 0; parents < 2 && i > 8; ++parents)
        if (random.below(2) == 0) job.parents.push_back(ids[random.below(ids.size())]);
      ids.push_back(patiently([&] { return jobs_->create(job); }));
    }
  }

  void kill_something(Random& random) {
    const auto choice = random.below(server_ ? 8 : 7);
    auto& launcher = launchers_[random.below(launchers_.size())];
    if (choice < 3) {
      launcher->signal(SIGKILL);
      launcher = start();
    } else if (choice < 7) {
      // A custodian, its guard or a task.
      const auto below = launcher->descendants();
      if (!below.empty()) ::kill(below[random.below(below.size())], SIGKILL);
    } else {
      server_->crash();
      server_->start();
    }
    // One whose head or last node was killed ends by itself.
    for (auto& one : launchers_)
      if (::kill(one->pid(), 0) != 0 || has_ended(*one)) one = start();
  }

  static bool has_ended(const KoloProcess& process) {
    siginfo_t info{};
    return ::waitid(P_PID, static_cast<id_t>(process.pid()), &info, WEXITED | WNOHANG | WNOWAIT) ==
               0 &&
           info.si_pid != 0;
  }

  [[nodiscard]] std::int64_t unfinished() {
    return patiently([this] {
      std::int64_t open = 0;
      for (const auto& count : jobs_->count_by_state())
        if (!is_end(count.state)) open += count.jobs;
      return open;
    });
  }

  TempDir scratch_;
  std::unique_ptr<PostgresServer> server_;
  std::unique_ptr<JobDatabase> jobs_;
  std::vector<std::unique_ptr<KoloProcess>> launchers_;
};
INSTANTIATE_TEST_SUITE_P(All, Chaos, testing::Values("sqlite", "postgresql"),
                         [](const auto& info) { return info.param; });

TEST_P(Chaos, EveryJobFinishesExactlyOnce) {
  const int jobs = from_environment("KOLO_CHAOS_JOBS", 150);
  const int kills = from_environment("KOLO_CHAOS_KILLS", 25);
  Random random(7);
  create(jobs, random);
  for (int i = 0; i < kills; ++i) {
    kill_something(random);
    std::this_thread::sleep_for(std::chrono::milliseconds(20 + random.below(200)));
  }
  const auto deadline = Deadline::after(std::chrono::seconds(60 + jobs / 10));
  while (unfinished() > 0 && !deadline.passed()) {
    for (auto& one : launchers_)
      if (has_ended(*one)) one = start();
    std::this_thread::sleep_for(50ms);
  }
  std::map<JobState, int> ends;
  int runs = 0;
  for (const auto& job : patiently([this] { return jobs_->find({}); })) {
    ++ends[job.state];
    const auto history = patiently([&] { return jobs_->history(job.id); });
    ASSERT_FALSE(history.empty());
    EXPECT_EQ(history.front().state, JobState::created);
    int finished = 0;
    for (std::size_t i = 1; i < history.size(); ++i) {
      EXPECT_TRUE(is_legal(history[i - 1].state, history[i].state))
          << "job " << int(job.id) << ": " << to_string(history[i - 1].state) << " → "
          << to_string(history[i].state);
      finished += history[i].state == JobState::job_finished ? 1 : 0;
      runs += history[i].state == JobState::running ? 1 : 0;
    }
    EXPECT_EQ(finished, 1) << "job " << int(job.id) << " is " << to_string(job.state) << ": "
                           << history.back().reason;
    EXPECT_EQ(job.launcher, 0) << "job " << int(job.id);
  }
  EXPECT_EQ(ends[JobState::job_finished], jobs);
  RecordProperty("runs", runs);
  fmt::print("{} jobs, {} kills, {} runs\n", jobs, kills, runs);
  // One whose last node was killed in the end has left with an error, and may.
  for (auto& launcher : launchers_)
    if (!has_ended(*launcher)) {
      launcher->signal(SIGTERM);
      EXPECT_EQ(launcher->wait(), 0) << launcher->err();
    }
}

}  // namespace
}  // namespace kolo::test

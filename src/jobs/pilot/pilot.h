// One launcher at work: the loop, and what it holds. See launcher.h.
//
// Everything happens in one thread, on events: frames from workers, a notification from the
// database, a signal, a time. What becomes of jobs is noted in memory and written in groups; a job
// is forgotten only when its end is committed.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <set>

#include "base/deadline.h"
#include "jobs/database/leases.h"
#include "jobs/database/waker.h"
#include "jobs/pilot/launcher.h"
#include "jobs/pilot/run_queue.h"
#include "jobs/pilot/task_command.h"
#include "jobs/worker_link.h"
#include "kolo/error.h"

namespace kolo::jobs {

class Pilot {
 public:
  enum class Outcome { done, fenced };

  Pilot(JobDatabase& jobs, const LauncherOptions& options, Deadline end, int signals,
        LauncherSummary& summary);
  /// `fenced`: others took this launcher for lost and have its jobs; begin again as a new one.
  Outcome run();

 private:
  /// What ends within such a time is written together.
  static constexpr std::chrono::milliseconds kFlushInterval{20};
  static constexpr std::chrono::milliseconds kFirstBackoff{50};

  enum class Phase {
    waiting,
    staging_in,
    preprocess,
    running,
    postprocess,
    staging_out,
    handler,
    ended
  };

  /// A write of which nobody knows whether it took place: the server went away before it answered.
  /// It is repeated as it was, which Leases::write can tell from one that came too late; what has
  /// happened since is written after it.
  struct Doubt {
    std::size_t steps = 0;
    int retries = 0;
    bool release = false;
  };

  /// A job that this launcher has the lease of.
  struct Held {
    Job job;
    Hold hold;
    JobState written{};           // in the database
    std::vector<Step> pending{};  // since then
    std::optional<Doubt> doubt{};
    Phase phase = Phase::waiting;
    std::optional<int> return_code{};
    int retries = 0;  // used since `written`
    bool release = false;
    bool killed = false;     // by the user; or somebody else has it
    bool timed_out = false;  // its task was told to end
    std::uint64_t task = 0;  // 0 = none
    WorkerLink* where = nullptr;
    Need need{};
    std::optional<Deadline> limit{};
    bool own_limit = false;  // `limit` is the job's, not a hook's
  };

  // pilot.cc: the loop
  void connect_nodes();
  void wait_for_events();
  void take_signals();
  void handle_frames(WorkerLink& link);
  void lose(WorkerLink& link);
  void check_times();
  void stop(const std::string& why);
  [[nodiscard]] bool is_over();
  [[nodiscard]] int poll_timeout_ms() const;
  LauncherFacts facts() const;

  // pilot_database.cc: what goes through the database
  /// False, and later again, if the database does not answer.
  template <class Call>
  bool try_database(Call&& call) {
    if (database_again_ && !database_again_->passed()) return false;
    try {
      call();
    } catch (const Error& error) {
      database_failed(error);
      return false;
    }
    database_again_.reset();
    backoff_ = kFirstBackoff;
    return true;
  }
  void database_failed(const Error& error);
  void keep_lease();
  void look_again() { look_single_ = look_several_ = true; }
  [[nodiscard]] bool wants_single() const;
  [[nodiscard]] bool wants_several() const;
  void take_jobs();
  void adopt(Taken taken);
  void shed();
  void flush();
  void settle(Held& held, bool written);
  void look_for_kills();

  // pilot_steps.cc: what becomes of one job
  void advance(Held& held);
  void stage_in(Held& held);
  void preprocess(Held& held);
  void postprocess(Held& held);
  void stage_out(Held& held);
  void after_error(Held& held);
  void after_timeout(Held& held);
  void start_runs();
  void start_run(Held& held, const std::vector<Place>& places);
  void start_helper(Held& held, StartTask task, Phase phase);
  void start_helpers();
  void send_task(Held& held, WorkerLink& link, StartTask task);
  void end_task(Held& held);
  void task_ended(std::uint64_t task, std::optional<int> status, const std::string& text);
  void run_ended(Held& held, std::optional<int> status, const std::string& text);
  void handler_ended(Held& held);
  void forget_killed(Held& held);
  void give_back(Held& held);
  void step(Held& held, JobState state, std::string reason = {});
  void fail(Held& held, std::string reason) { step(held, JobState::failed, std::move(reason)); }
  const Application& application_of(const Job& job);

  JobDatabase& jobs_;
  const LauncherOptions& options_;
  Deadline end_;
  int signals_;
  LauncherSummary& summary_;

  std::optional<Leases> leases_;
  std::unique_ptr<Waker> waker_;
  std::vector<std::unique_ptr<WorkerLink>> links_;  // by node
  std::unique_ptr<WorkerLink> head_;
  std::unique_ptr<RunQueue> queue_;
  int cores_ = 0, gpus_ = 0;  // of the largest node

  std::map<JobId, Held> held_;
  std::set<JobId> dirty_;
  std::map<std::uint64_t, JobId> tasks_;
  std::uint64_t next_task_ = 1;
  std::deque<std::pair<JobId, StartTask>> helpers_;  // that wait for their turn
  int helpers_running_ = 0;
  std::map<std::string, Application, std::less<>> applications_;

  bool stopping_ = false;
  std::string why_stopping_;
  std::optional<Deadline> give_up_;                // stopping, and the database does not answer
  bool look_single_ = true, look_several_ = true;  // there may be jobs to take
  bool look_for_kills_ = false;
  bool take_in_doubt_ = false;  // the server went away before it said which jobs were taken
  std::size_t ahead_ = 2;       // jobs to have at hand beyond those that run
  Deadline::Clock::time_point last_take_{}, last_flush_{}, idle_since_{};
  std::optional<Deadline> database_again_;  // it did not answer; not before then
  std::chrono::milliseconds backoff_ = kFirstBackoff;
  Deadline lease_due_, lost_due_;
  std::optional<Deadline> next_limit_;  // of a task
};

}  // namespace kolo::jobs

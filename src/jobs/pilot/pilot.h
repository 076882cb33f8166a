// One launcher's decisions: which jobs it takes, what it starts where, and what becomes of the
// jobs.
//
// A pilot waits for nothing and runs nothing itself. The launcher's loop tells it what has happened
// (a task has ended, a node is lost, the database has news, a signal has come), calls turn(), and
// waits until next_turn(). Tasks are run by a TaskHost, and time comes from a Clock. What becomes
// of jobs is noted in memory and written in groups; a job is forgotten only when its end is
// committed.
//
// Vocabulary:
//   held job   a job that this launcher has the lease of (held_job.h)
//   step       a change of a job's state, noted here and not yet written
//   unwritten  held jobs with steps to write, or to be given back
//   hook       a script or a copy of files before or after a run; it runs on the launcher's machine
//   reserve    jobs that are held and wait, so that a node that gets free has work at once
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/retry.h"
#include "jobs/database/leases.h"
#include "jobs/pilot/held_job.h"
#include "jobs/pilot/launcher.h"
#include "jobs/pilot/run_queue.h"
#include "jobs/pilot/task_command.h"

namespace kolo::jobs {

class Pilot {
 public:
  /// Enters the launcher into the database. All arguments must outlive this. `end` is when its time
  /// is over.
  Pilot(JobDatabase& jobs, const LauncherOptions& options, const std::vector<Node>& nodes,
        TaskHost& tasks, const Clock& clock, Clock::Time end, LauncherSummary& summary);

  // What has happened.
  /// `text` is the end of its output, or, without a status, why it could not be started.
  void task_ended(exec::TaskId task, std::optional<int> status, const std::string& text);
  /// What ran there starts again. Throws unavailable if no node is left.
  void node_lost(int node, const std::string& why);
  /// The database has news.
  void notified();
  /// Ends all tasks, and takes no more jobs.
  void stop(const std::string& why);
  /// The same for who does not want to wait: tasks are killed.
  void stop_at_once(const std::string& why);

  /// Does what can be done now. Throws failed_precondition if others took this launcher for lost
  /// and have its jobs: begin again as a new one.
  void turn();
  /// When turn() is to be called at the latest.
  [[nodiscard]] Clock::Time next_turn() const;
  /// Nothing is left to do, or the launcher was stopped and all is written.
  [[nodiscard]] bool is_over();
  /// Signs off; without a database its lease runs out.
  void finish();

  [[nodiscard]] std::int64_t launcher_id() const noexcept { return leases_.id(); }

 private:
  /// What ends within such a time is written together.
  static constexpr std::chrono::milliseconds kWriteInterval{20};

  // pilot.cc: events and times
  void check_times();
  /// Throws when waiting for the database makes no sense any longer.
  void check_database();
  void check_limits();
  void set_limit(HeldJob& held, Clock::Duration time);
  [[nodiscard]] LauncherFacts facts() const;

  // pilot_database.cc: what goes through the database
  /// False, and to be called again later, if the database does not answer.
  template <class Call>
  bool try_database(Call&& call) {
    return database_.attempt(std::forward<Call>(call));
  }
  void keep_lease();
  void look_again() { look_single_ = look_several_ = true; }
  [[nodiscard]] bool wants_single() const;
  [[nodiscard]] bool wants_several() const;
  void take_jobs();
  void hold(Taken taken);
  /// Gives back jobs that wait here while another launcher may be idle.
  void share_reserve();
  void write_steps();
  void write_now();
  void write_accepted(HeldJob& held);
  /// The job is not as it was when it was held.
  void write_refused(HeldJob& held);
  /// What others have done to held jobs: ended them, or let them yield.
  void look_at_held();
  /// Jobs that stay behind because nobody can run them, for the summary.
  void note_left();

  // pilot_steps.cc: what becomes of one job
  void advance(HeldJob& held);
  void stage_in(HeldJob& held);
  void preprocess(HeldJob& held);
  void postprocess(HeldJob& held);
  void stage_out(HeldJob& held);
  void after_error(HeldJob& held);
  void after_timeout(HeldJob& held);
  void step(HeldJob& held, JobState state, std::string reason = {});
  void fail(HeldJob& held, std::string reason) { step(held, JobState::failed, std::move(reason)); }
  /// Leaves the job as others have made it, and gives the lease back.
  void let_go(HeldJob& held);
  void give_back(HeldJob& held);
  const Application& application_of(const Job& job);

  // pilot_tasks.cc: tasks and their ends
  void start_runs();
  void start_run(HeldJob& held, const std::vector<Place>& places);
  void add_hook(HeldJob& held, exec::Task task, Phase phase);
  void start_hooks();
  void send_task(HeldJob& held, int node, exec::Task task);
  void end_task(HeldJob& held);
  /// What the job's task was; the job has none from now on.
  Phase forget_task(HeldJob& held);
  void judge_run(HeldJob& held);
  void run_ended(HeldJob& held, const RunEnd& end);
  void hook_ended(HeldJob& held, Phase phase, std::optional<int> status, const std::string& text);
  void handler_ended(HeldJob& held);

  JobDatabase& jobs_;
  const LauncherOptions& options_;
  TaskHost& host_;
  const Clock& clock_;
  Clock::Time end_;
  LauncherSummary& summary_;
  RunQueue queue_;
  int cores_ = 0, gpus_ = 0;  // of the largest node
  Leases leases_;
  Retry database_;

  std::map<JobId, HeldJob> held_;
  std::set<JobId> unwritten_;
  std::map<exec::TaskId, JobId> tasks_;
  exec::TaskId next_task_ = 1;
  std::deque<std::pair<JobId, exec::Task>> hooks_;  // that wait for their turn
  int hooks_running_ = 0;
  std::map<std::string, Application, std::less<>> applications_;

  bool stopping_ = false;
  std::string why_stopping_;
  std::optional<Clock::Time> give_up_;             // nothing is left but to wait for the database
  bool look_single_ = true, look_several_ = true;  // there may be jobs to take
  bool look_at_held_ = false;
  bool take_unconfirmed_ = false;  // the server went away before it said which jobs were taken
  std::size_t reserve_ = 2;
  Clock::Time last_take_{}, last_write_{}, idle_since_;
  Clock::Time lease_due_, lost_due_;
  std::optional<Clock::Time> next_limit_;  // of a task
};

}  // namespace kolo::jobs

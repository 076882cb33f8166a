// The tasks of jobs: runs and hooks, and what their ends mean.
#include <signal.h>
#include <sys/wait.h>

#include <utility>

#include "base/errors.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "jobs/database/body.h"
#include "jobs/pilot/pilot.h"

namespace kolo::jobs {
namespace {

using namespace std::chrono_literals;

/// How long after a task that somebody sent SIGTERM the launcher may be sent one, too.
constexpr auto kMoment = 200ms;
/// Nodes that are named in a job's history.
constexpr std::size_t kNamedNodes = 16;

/// A reason for people: one line, not too long.
std::string with_tail(std::string what, std::string tail) {
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.pop_back();
  return tail.empty() ? what : what + "; its output ends: " + tail;
}

bool was_terminated(std::optional<int> status) {
  return status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGTERM;
}

}  // namespace

void Pilot::start_runs() {
  if (stopping_) return;
  for (const auto& start : queue_.start(clock_.date())) {
    HeldJob& held = held_.at(start.id);
    try {
      start_run(held, start.places);
    } catch (const Error& error) {
      queue_.ended(start.id);
      if (error.code() == ErrorCode::unavailable)
        give_back(held);  // the database, not the job
      else
        fail(held, error.message());
    }
  }
}

void Pilot::start_run(HeldJob& held, const std::vector<Place>& places) {
  std::vector<std::string> hosts;
  std::string where = "on";
  for (const auto& place : places) {
    const auto& node = options_.nodes[static_cast<std::size_t>(place.node)];
    hosts.push_back(node.host);
    if (hosts.size() <= kNamedNodes) where += " " + node.name;
  }
  if (hosts.size() > kNamedNodes) where += fmt::format(" and {} more", hosts.size() - kNamedNodes);
  exec::Task task = run_task(held.job, application_of(held.job), jobs_.folder_of(held.job).string(),
                             places, hosts, facts());
  held.phase = Phase::running;
  held.told_to_end = held.own_limit = false;
  ++summary_.runs;
  log::info("job {} ({}) starts {}", raw(held.job.id), held.job.name, where);
  step(held, JobState::running, std::move(where));
  send_task(held, needs_runner(held.job) ? kOwnMachine : places[0].node, std::move(task));
  if (held.job.time_limit_seconds > 0) {
    held.own_limit = true;
    set_limit(held, clock_duration(held.job.time_limit_seconds));
  }
}

void Pilot::add_hook(HeldJob& held, exec::Task task, Phase phase) {
  if (stopping_) return give_back(held);  // another launcher will
  held.phase = phase;
  hooks_.emplace_back(held.job.id, std::move(task));
}

void Pilot::start_hooks() {
  if (hooks_.empty() || hooks_running_ >= options_.hooks_at_once) return;
  // A script may look at its job, so what the job has come to is written before.
  write_now();
  if (!unwritten_.empty()) return;
  while (!hooks_.empty() && hooks_running_ < options_.hooks_at_once) {
    auto [id, task] = std::move(hooks_.front());
    hooks_.pop_front();
    const auto found = held_.find(id);
    if (found == held_.end() || found->second.out_of_hands) continue;
    ++hooks_running_;
    found->second.told_to_end = false;
    set_limit(found->second, options_.hook_limit);
    send_task(found->second, kOwnMachine, std::move(task));
  }
}

void Pilot::send_task(HeldJob& held, int node, exec::Task task) {
  task.id = next_task_++;
  held.task = task.id;
  held.node = node;
  tasks_[task.id] = held.job.id;
  host_.start(node, task);
}

void Pilot::end_task(HeldJob& held) {
  if (held.task == 0) return;
  held.told_to_end = true;
  host_.end(held.node, held.task);
}

Phase Pilot::forget_task(HeldJob& held) {
  tasks_.erase(held.task);
  held.task = 0;
  held.limit.reset();
  const Phase phase = std::exchange(held.phase, Phase::waiting);
  if (phase == Phase::running)
    queue_.ended(held.job.id);
  else
    --hooks_running_;
  return phase;
}

void Pilot::task_ended(exec::TaskId task, std::optional<int> status, const std::string& text) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  HeldJob& held = held_.at(found->second);
  const Phase phase = forget_task(held);
  if (held.out_of_hands) return let_go(held);
  if (phase == Phase::running) {
    held.judged = RunEnd{status, text};
    if (!was_terminated(status) || held.told_to_end) return judge_run(held);
    held.phase = Phase::judging;
    set_limit(held, kMoment);
    return;
  }
  if (phase == Phase::handler)
    handler_ended(held);
  else if (stopping_)
    return give_back(held);
  else
    hook_ended(held, phase, status, text);
  advance(held);
}

void Pilot::judge_run(HeldJob& held) {
  held.phase = Phase::waiting;
  held.limit.reset();
  run_ended(held, std::exchange(held.judged, std::nullopt).value());
  held.told_to_end = false;
  advance(held);
}

void Pilot::run_ended(HeldJob& held, const RunEnd& end) {
  held.return_code = end.status ? exit_code_of(*end.status) : 127;
  if (held.told_to_end) {
    if (stopping_) held.own_limit = false;
    return step(held, JobState::run_timeout,
                stopping_ ? why_stopping_
                          : fmt::format("it ran longer than its limit of {} s",
                                        held.job.time_limit_seconds));
  }
  if (end.status == 0) return step(held, JobState::run_done);
  step(held, JobState::run_error,
       end.status ? with_tail(describe_wait_status(*end.status), end.text) : end.text);
}

void Pilot::hook_ended(HeldJob& held, Phase phase, std::optional<int> status,
                       const std::string& text) {
  struct Row {
    Phase phase;
    JobState next;
    std::string_view what;
  };
  constexpr Row kRows[] = {{Phase::staging_in, JobState::staged_in, "staging in"},
                           {Phase::preprocess, JobState::preprocessed, "preprocess"},
                           {Phase::postprocess, JobState::postprocessed, "postprocess"},
                           {Phase::staging_out, JobState::job_finished, "staging out"}};
  for (const auto& row : kRows) {
    if (row.phase != phase) continue;
    if (status == 0)
      step(held, row.next);
    else if (held.told_to_end)
      fail(held, fmt::format("{} did not end within {} s", row.what, options_.hook_limit.count()));
    else if (status)
      fail(held, with_tail(fmt::format("{}: {}", row.what, describe_wait_status(*status)), text));
    else
      fail(held, fmt::format("{}: {}", row.what, text));
  }
}

void Pilot::handler_ended(HeldJob& held) {
  // Whatever the script wanted, it has said to the database.
  Job now;
  if (!try_database([&] { now = leases_.reread(held.job.id); })) return give_back(held);
  if (now.state == held.written)
    return fail(held, "the handler did not change the state of the job; see postprocess.log");
  held.job = std::move(now);
  held.written = held.job.state;
  held.need = need_of(held.job, options_.mode);
  if (is_end(held.job.state)) let_go(held);
}

}  // namespace kolo::jobs

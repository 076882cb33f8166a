// What becomes of one job: from state to state, with a task in between where one is needed.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "jobs/database/body.h"
#include "jobs/pilot/pilot.h"
#include "jobs/pilot/staging.h"

namespace kolo::jobs {
namespace {

constexpr int kMomentMs = 200;

/// A reason for people: one line, not too long.
std::string with_tail(std::string what, std::string tail) {
  while (!tail.empty() && (tail.back() == '\n' || tail.back() == ' ')) tail.pop_back();
  return tail.empty() ? what : what + "; its output ends: " + tail;
}

}  // namespace

const Application& Pilot::application_of(const Job& job) {
  auto found = applications_.find(job.application);
  if (found == applications_.end())
    found = applications_.emplace(job.application, jobs_.application(job.application)).first;
  return found->second;
}

void Pilot::step(Held& held, JobState state, std::string reason) {
  held.pending.push_back({state, body_of(jobs_).date(), std::move(reason)});
  held.job.state = state;
  dirty_.insert(held.job.id);
  if (!is_end(state)) return;
  held.release = true;
  held.phase = Phase::ended;
  ++(state == JobState::job_finished ? summary_.finished : summary_.failed);
}

void Pilot::advance(Held& held) {
  try {
    while (held.phase == Phase::waiting) {
      const JobState before = held.job.state;
      switch (before) {
        case JobState::ready: stage_in(held); break;
        case JobState::staged_in: preprocess(held); break;
        case JobState::preprocessed:
        case JobState::restart_ready:
          if (stopping_) return give_back(held);
          queue_->add(held.job.id, held.need, 60.0 * held.job.wall_time_minutes);
          return;
        case JobState::run_done: postprocess(held); break;
        case JobState::postprocessed: stage_out(held); break;
        case JobState::run_error: after_error(held); break;
        case JobState::run_timeout: after_timeout(held); break;
        default: return;
      }
      if (held.job.state == before) return;  // a task was started, or will be
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::unavailable) {
      // The database; the job is given back and taken again when it answers.
      log::warning("job {}: {}", static_cast<std::int64_t>(held.job.id), error.message());
      return give_back(held);
    }
    fail(held, error.message());
  }
}

void Pilot::stage_in(Held& held) {
  const auto folder = jobs_.folder_of(held.job);
  make_folder(folder);
  for (const JobId parent : held.job.parents)
    link_inputs(folder, jobs_.folder_of(jobs_.job(parent)), parent, held.job.input_files);
  if (held.job.stage_in_url.empty()) return step(held, JobState::staged_in);
  StartTask copy;
  copy.argv = stage_in_command(held.job.stage_in_url, folder);
  copy.directory = folder.string();
  copy.output = (folder / "stage_in.log").string();
  start_helper(held, std::move(copy), Phase::staging_in);
}

void Pilot::preprocess(Held& held) {
  const auto& script = application_of(held.job).preprocess;
  if (script.empty()) return step(held, JobState::preprocessed);
  start_helper(held,
               hook_task(held.job, script, "preprocess.log", jobs_.folder_of(held.job).string(),
                         Occasion::normal, facts()),
               Phase::preprocess);
}

void Pilot::postprocess(Held& held) {
  const auto& script = application_of(held.job).postprocess;
  if (script.empty()) return step(held, JobState::postprocessed);
  start_helper(held,
               hook_task(held.job, script, "postprocess.log", jobs_.folder_of(held.job).string(),
                         Occasion::normal, facts()),
               Phase::postprocess);
}

void Pilot::stage_out(Held& held) {
  if (held.job.stage_out_url.empty()) return step(held, JobState::job_finished);
  const auto folder = jobs_.folder_of(held.job);
  auto command = stage_out_command(folder, held.job.stage_out_files, held.job.stage_out_url);
  if (!command) return step(held, JobState::job_finished, "no file to stage out");
  StartTask copy;
  copy.argv = std::move(*command);
  copy.directory = folder.string();
  copy.output = (folder / "stage_out.log").string();
  start_helper(held, std::move(copy), Phase::staging_out);
}

void Pilot::after_error(Held& held) {
  const auto& script = application_of(held.job).postprocess;
  if (held.job.post_error_handler && !script.empty())
    return start_helper(held,
                        hook_task(held.job, script, "postprocess.log",
                                  jobs_.folder_of(held.job).string(), Occasion::error, facts()),
                        Phase::handler);
  if (held.job.retries >= held.job.max_retries) return fail(held, "no handler, no retry left");
  ++held.job.retries;
  ++held.retries;
  step(held, JobState::restart_ready,
       fmt::format("retry {} of {}", held.job.retries, held.job.max_retries));
}

void Pilot::after_timeout(Held& held) {
  const auto& script = application_of(held.job).postprocess;
  if (held.job.post_timeout_handler && !script.empty())
    return start_helper(held,
                        hook_task(held.job, script, "postprocess.log",
                                  jobs_.folder_of(held.job).string(), Occasion::timeout, facts()),
                        Phase::handler);
  // The job's own limit will not be kept the next time either.
  if (held.job.auto_timeout_retry && !held.own_limit)
    return step(held, JobState::restart_ready, "runs again");
  if (held.own_limit && held.job.retries < held.job.max_retries) return after_error(held);
  fail(held, "no handler, no retry");
}

void Pilot::start_runs() {
  if (stopping_) return;
  for (const auto& start : queue_->start(body_of(jobs_).date())) {
    Held& held = held_.at(start.id);
    try {
      start_run(held, start.places);
    } catch (const Error& error) {
      queue_->ended(start.id);
      if (error.code() == ErrorCode::unavailable)
        give_back(held);  // the database, not the job
      else
        fail(held, error.message());
    }
  }
}

void Pilot::start_run(Held& held, const std::vector<Place>& places) {
  std::vector<std::string> hosts, names;
  for (const auto& place : places) {
    hosts.push_back(options_.nodes[static_cast<std::size_t>(place.node)].host);
    names.push_back(options_.nodes[static_cast<std::size_t>(place.node)].name);
  }
  StartTask task = run_task(held.job, application_of(held.job), jobs_.folder_of(held.job).string(),
                            places, hosts, facts());
  WorkerLink& link =
      needs_runner(held.job) ? *head_ : *links_[static_cast<std::size_t>(places[0].node)];
  std::string where = "on";
  for (std::size_t i = 0; i < names.size() && i < 16; ++i) where += " " + names[i];
  if (names.size() > 16) where += fmt::format(" and {} more", names.size() - 16);
  held.phase = Phase::running;
  held.timed_out = held.own_limit = false;
  ++summary_.runs;
  step(held, JobState::running, std::move(where));
  send_task(held, link, std::move(task));
  if (held.job.time_limit_seconds > 0) {
    held.own_limit = true;
    held.limit = Deadline::after(
        std::chrono::nanoseconds(static_cast<std::int64_t>(held.job.time_limit_seconds * 1e9)));
    if (!next_limit_ || held.limit->when() < next_limit_->when()) next_limit_ = held.limit;
  }
}

void Pilot::send_task(Held& held, WorkerLink& link, StartTask task) {
  task.task = next_task_++;
  held.task = task.task;
  held.where = &link;
  tasks_[task.task] = held.job.id;
  link.send(frame(WorkerMessage::start, encode(task)));
  link.flush();
}

void Pilot::start_helper(Held& held, StartTask task, Phase phase) {
  if (stopping_) return give_back(held);  // another launcher will
  held.phase = phase;
  task.grace_ms = static_cast<std::uint32_t>(options_.grace.count());
  helpers_.emplace_back(held.job.id, std::move(task));
}

void Pilot::start_helpers() {
  if (helpers_.empty() || helpers_running_ >= options_.hooks_at_once) return;
  // A script may look at its job, so what the job has come to is written before.
  last_flush_ = {};
  flush();
  if (!dirty_.empty()) return;
  while (!helpers_.empty() && helpers_running_ < options_.hooks_at_once) {
    auto [id, task] = std::move(helpers_.front());
    helpers_.pop_front();
    const auto found = held_.find(id);
    if (found == held_.end() || found->second.killed) continue;
    ++helpers_running_;
    found->second.limit = Deadline::after(options_.hook_limit);
    if (!next_limit_ || found->second.limit->when() < next_limit_->when())
      next_limit_ = found->second.limit;
    send_task(found->second, *head_, std::move(task));
  }
}

void Pilot::end_task(Held& held) {
  if (held.task == 0) return;
  held.timed_out = true;
  held.where->send(frame(WorkerMessage::end, encode_task(held.task)));
  held.where->flush();
}

void Pilot::task_ended(std::uint64_t task, std::optional<int> status, const std::string& text) {
  const auto found = tasks_.find(task);
  if (found == tasks_.end()) return;
  Held& held = held_.at(found->second);
  tasks_.erase(found);
  held.task = 0;
  held.limit.reset();
  const Phase phase = std::exchange(held.phase, Phase::waiting);
  if (phase == Phase::running)
    queue_->ended(held.job.id);
  else
    --helpers_running_;
  if (held.killed) return forget_killed(held);
  if (phase == Phase::running) {
    run_ended(held, status, text);
  } else if (phase == Phase::handler) {
    handler_ended(held);
  } else if (stopping_) {
    return give_back(held);
  } else {
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
      else if (held.timed_out)
        fail(held,
             fmt::format("{} did not end within {} s", row.what, options_.hook_limit.count()));
      else
        fail(held, with_tail(fmt::format("{}: {}", row.what,
                                         status ? describe_wait_status(*status) : text),
                             status ? text : ""));
      break;
    }
  }
  held.timed_out = false;
  advance(held);
}

void Pilot::run_ended(Held& held, std::optional<int> status, const std::string& text) {
  held.return_code = status ? exit_code_of(*status) : 127;
  // A batch system that ends an allocation tells all its processes, and a task may be faster than
  // this one: then it is the launcher's time that was over.
  if (status && WIFSIGNALED(*status) && WTERMSIG(*status) == SIGTERM && !held.timed_out) {
    pollfd told{signals_, POLLIN, 0};
    if (::poll(&told, 1, kMomentMs) > 0) {
      take_signals();
      held.phase = Phase::waiting;  // given back too early
      held.release = false;
      held.timed_out = true;
    }
  }
  if (held.timed_out) {
    const std::string why =
        stopping_ ? why_stopping_
                  : fmt::format("its limit of {} s was over", held.job.time_limit_seconds);
    if (stopping_) held.own_limit = false;
    return step(held, JobState::run_timeout, why);
  }
  if (status == 0) return step(held, JobState::run_done);
  if (!status) return step(held, JobState::run_error, text);
  step(held, JobState::run_error, with_tail(describe_wait_status(*status), text));
}

void Pilot::handler_ended(Held& held) {
  // Whatever the script wanted, it has said to the database.
  Job now;
  if (!try_database([&] { now = leases_->reread(held.job.id); })) return give_back(held);
  if (now.state == held.written)
    return fail(held, "the handler has not changed the state; see postprocess.log");
  held.job = std::move(now);
  held.written = held.job.state;
  held.need = need_of(held.job, options_.mode);
  if (is_end(held.job.state)) {
    held.killed = true;
    forget_killed(held);
  }
}

void Pilot::forget_killed(Held& held) {
  // The state is what others have made it; only the lease is given back.
  queue_->remove(held.job.id);
  held.phase = Phase::ended;
  held.killed = true;
  held.pending.clear();
  held.doubt.reset();
  held.retries = 0;
  held.return_code.reset();
  held.release = true;
  dirty_.insert(held.job.id);
}

void Pilot::give_back(Held& held) {
  queue_->remove(held.job.id);
  held.phase = Phase::ended;
  held.release = true;
  dirty_.insert(held.job.id);
}

}  // namespace kolo::jobs

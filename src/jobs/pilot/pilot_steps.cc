// What becomes of one job: from state to state, with a task in between where one is needed.
#include "base/errors.h"
#include "base/log.h"
#include "jobs/database/body.h"
#include "jobs/pilot/pilot.h"
#include "jobs/pilot/staging.h"

namespace kolo::jobs {

const Application& Pilot::application_of(const Job& job) {
  auto found = applications_.find(job.application);
  if (found == applications_.end())
    found = applications_.emplace(job.application, jobs_.application(job.application)).first;
  return found->second;
}

void Pilot::step(HeldJob& held, JobState state, std::string reason) {
  const bool is_trouble = state == JobState::run_error || state == JobState::run_timeout;
  if (is_end(state) || is_trouble || state == JobState::restart_ready)
    log::info("job {} ({}) is {}{}{}", raw(held.job.id), held.job.name, to_string(state),
              reason.empty() ? "" : ": ", reason);
  held.pending.push_back({state, clock_.date(), std::move(reason)});
  held.job.state = state;
  unwritten_.insert(held.job.id);
  if (!is_end(state)) return;
  held.release = true;
  held.phase = Phase::ended;
  ++(state == JobState::job_finished ? summary_.finished : summary_.failed);
}

void Pilot::advance(HeldJob& held) {
  try {
    while (held.phase == Phase::waiting) {
      const JobState before = held.job.state;
      switch (before) {
        case JobState::ready: stage_in(held); break;
        case JobState::staged_in: preprocess(held); break;
        case JobState::preprocessed:
        case JobState::restart_ready:
          if (stopping_) return give_back(held);
          queue_.add(held.job.id, held.need, 60.0 * held.job.wall_time_minutes);
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
  } catch (const std::exception& error) {
    fail(held, error.what());
  }
}

void Pilot::stage_in(HeldJob& held) {
  const auto folder = jobs_.folder_of(held.job);
  make_folder(folder);
  for (const JobId parent : held.job.parents)
    link_inputs(folder, jobs_.folder_of(jobs_.job(parent)), parent, held.job.input_files);
  if (held.job.stage_in_url.empty()) return step(held, JobState::staged_in);
  exec::Task copy = task_in(folder.string(), "stage_in.log", facts());
  copy.argv = stage_in_command(held.job.stage_in_url, folder);
  add_hook(held, std::move(copy), Phase::staging_in);
}

void Pilot::preprocess(HeldJob& held) {
  const auto& script = application_of(held.job).preprocess;
  if (script.empty()) return step(held, JobState::preprocessed);
  add_hook(held,
           hook_task(held.job, script, "preprocess.log", jobs_.folder_of(held.job).string(),
                     Occasion::normal, facts()),
           Phase::preprocess);
}

void Pilot::postprocess(HeldJob& held) {
  const auto& script = application_of(held.job).postprocess;
  if (script.empty()) return step(held, JobState::postprocessed);
  add_hook(held,
           hook_task(held.job, script, "postprocess.log", jobs_.folder_of(held.job).string(),
                     Occasion::normal, facts()),
           Phase::postprocess);
}

void Pilot::stage_out(HeldJob& held) {
  if (held.job.stage_out_url.empty()) return step(held, JobState::job_finished);
  const auto folder = jobs_.folder_of(held.job);
  auto command = stage_out_command(folder, held.job.stage_out_files, held.job.stage_out_url);
  if (!command) return step(held, JobState::job_finished, "there is no file to stage out");
  exec::Task copy = task_in(folder.string(), "stage_out.log", facts());
  copy.argv = std::move(*command);
  add_hook(held, std::move(copy), Phase::staging_out);
}

void Pilot::after_error(HeldJob& held) {
  const auto& script = application_of(held.job).postprocess;
  if (held.job.post_error_handler && !script.empty())
    return add_hook(held,
                    hook_task(held.job, script, "postprocess.log",
                              jobs_.folder_of(held.job).string(), Occasion::error, facts()),
                    Phase::handler);
  if (held.job.retries >= held.job.max_retries)
    return fail(held, "the job has no error handler and no retries left");
  ++held.job.retries;
  ++held.retries;
  step(held, JobState::restart_ready,
       fmt::format("retry {} of {}", held.job.retries, held.job.max_retries));
}

void Pilot::after_timeout(HeldJob& held) {
  const auto& script = application_of(held.job).postprocess;
  if (held.job.post_timeout_handler && !script.empty())
    return add_hook(held,
                    hook_task(held.job, script, "postprocess.log",
                              jobs_.folder_of(held.job).string(), Occasion::timeout, facts()),
                    Phase::handler);
  // The job's own limit will not be kept the next time either.
  if (held.job.auto_timeout_retry && !held.own_limit)
    return step(held, JobState::restart_ready, "it runs again");
  if (held.own_limit && held.job.retries < held.job.max_retries) return after_error(held);
  fail(held, "the job has no timeout handler and is not retried");
}

void Pilot::let_go(HeldJob& held) {
  log::info("job {} ({}) is left as others have made it", raw(held.job.id), held.job.name);
  // The state is what others have made it; only the lease is given back.
  queue_.remove(held.job.id);
  held.phase = Phase::ended;
  held.out_of_hands = true;
  held.pending.clear();
  held.unconfirmed.reset();
  held.judged.reset();
  held.limit.reset();
  held.retries = 0;
  held.return_code.reset();
  held.release = true;
  unwritten_.insert(held.job.id);
}

void Pilot::give_back(HeldJob& held) {
  log::info("job {} ({}) is given back", raw(held.job.id), held.job.name);
  queue_.remove(held.job.id);
  held.phase = Phase::ended;
  held.release = true;
  unwritten_.insert(held.job.id);
}

}  // namespace kolo::jobs

// The states of a job and the ways between them.
//
//   CREATED → AWAITING_PARENTS → READY → STAGED_IN → PREPROCESSED → RUNNING → RUN_DONE → …
//   … → POSTPROCESSED → JOB_FINISHED; RUNNING → RUN_ERROR, RUN_TIMEOUT → RESTART_READY → RUNNING
//
// Every live state may go to FAILED and USER_KILLED, which only a retry leaves.
#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "base/errors.h"
#include "base/registry.h"
#include "kolo/jobs.h"

namespace kolo::jobs {
namespace {

struct Row {
  JobState state;
  std::string_view name;
  std::array<JobState, 4> next;  // filled up with the state itself
};

using enum JobState;
constexpr Row kStates[] = {
    {created, "CREATED", {awaiting_parents, ready, created, created}},
    {awaiting_parents, "AWAITING_PARENTS", {ready, ready, ready, ready}},
    {ready, "READY", {staged_in, awaiting_parents, ready, ready}},
    {staged_in, "STAGED_IN", {preprocessed, staged_in, staged_in, staged_in}},
    {preprocessed, "PREPROCESSED", {running, preprocessed, preprocessed, preprocessed}},
    {running, "RUNNING", {run_done, run_error, run_timeout, restart_ready}},
    {run_done, "RUN_DONE", {postprocessed, run_done, run_done, run_done}},
    {postprocessed, "POSTPROCESSED", {job_finished, postprocessed, postprocessed, postprocessed}},
    {job_finished, "JOB_FINISHED", {job_finished, job_finished, job_finished, job_finished}},
    // A handler may send a job back, or take what it has for good.
    {run_timeout, "RUN_TIMEOUT", {restart_ready, run_done, postprocessed, run_timeout}},
    {run_error, "RUN_ERROR", {restart_ready, run_done, postprocessed, run_error}},
    {restart_ready, "RESTART_READY", {running, restart_ready, restart_ready, restart_ready}},
    // A user may retry what has not finished.
    {failed, "FAILED", {restart_ready, ready, awaiting_parents, failed}},
    {user_killed, "USER_KILLED", {restart_ready, ready, awaiting_parents, user_killed}},
};

/// A damaged database may have others.
bool is_known(JobState state) { return static_cast<std::size_t>(state) < std::size(kStates); }

const Row& row_of(JobState state) { return kStates[static_cast<std::size_t>(state)]; }

}  // namespace

std::string_view to_string(JobState state) noexcept {
  return is_known(state) ? row_of(state).name : "?";
}

JobState parse_state(std::string_view name) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  std::vector<std::string_view> known;
  for (const auto& row : kStates) {
    if (row.name == upper) return row.state;
    known.push_back(row.name);
  }
  throw_unknown_name("state", upper, known, ErrorCode::invalid_argument);
}

bool is_end(JobState state) noexcept {
  return state == job_finished || state == failed || state == user_killed;
}

bool is_legal(JobState from, JobState to) noexcept {
  if (from == to || !is_known(from)) return false;
  if (to == failed || to == user_killed) return !is_end(from);
  const auto& next = row_of(from).next;
  return std::find(next.begin(), next.end(), to) != next.end();
}

}  // namespace kolo::jobs

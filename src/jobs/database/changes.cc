#include "jobs/database/changes.h"

#include "base/errors.h"
#include "jobs/database/body.h"

namespace kolo::jobs {

bool is_takeable(JobState state) noexcept {
  return !is_end(state) && state != JobState::created && state != JobState::awaiting_parents &&
         state != JobState::running;
}

bool Changes::write(const Chain& chain, std::int64_t& steps, std::int64_t& children) {
  const JobState to = chain.steps.empty() ? chain.from : chain.steps.back().state;
  const bool ours = chain.hold.has_value();
  // Whoever holds no job leaves the lease as it is.
  auto& update = database_.prepare(
      ours ? "UPDATE jobs SET state = $1, queue = $2, steps = steps + $3, retries = retries + $4, "
             "return_code = COALESCE($5, return_code), lease = $6 WHERE id = $7 AND state = $8 AND "
             "lease = $9 AND attempt = $10 RETURNING steps, children"
           : "UPDATE jobs SET state = $1, queue = CASE WHEN lease = 0 THEN $2 ELSE 0 END, "
             "steps = steps + $3, retries = retries + $4, "
             "return_code = COALESCE($5, return_code) WHERE id = $6 AND state = $7 "
             "RETURNING steps, children");
  const bool queued = is_takeable(to) && (!ours || chain.release);
  update.bind(1, raw(to)).bind(2, queued ? 1 : 0);
  update.bind(3, static_cast<std::int64_t>(chain.steps.size())).bind(4, chain.retries);
  if (chain.return_code)
    update.bind(5, *chain.return_code);
  else
    update.bind_null(5);
  int next = 6;
  if (ours) update.bind(next++, chain.release ? 0 : chain.hold->launcher);
  update.bind(next++, raw(chain.id));
  update.bind(next++, raw(chain.from));
  if (ours) {
    update.bind(next++, chain.hold->launcher);
    update.bind(next++, chain.hold->attempt);
  }
  const bool found = update.next();
  if (found) {
    steps = update.integer(0);
    children = update.integer(1);
  }
  update.reset();
  return found;
}

bool Changes::apply(const Chain& chain) {
  const std::size_t first = ended_.size();
  const bool is_changed = change(chain);
  // Children that end have children: very many may stand one after the other.
  for (std::size_t i = first; i < ended_.size(); ++i) tell_children(Ended(ended_[i]));
  ended_.resize(first);
  return is_changed;
}

bool Changes::change(const Chain& chain) {
  JobState state = chain.from;
  for (const auto& step : chain.steps) {
    if (!is_legal(state, step.state))
      throw_error(ErrorCode::failed_precondition, "job {} cannot go from {} to {}", raw(chain.id),
                  to_string(state), to_string(step.state));
    state = step.state;
  }
  std::int64_t steps = 0, children = 0;
  if (!write(chain, steps, children)) return false;
  steps -= static_cast<std::int64_t>(chain.steps.size());
  for (const auto& step : chain.steps) lines_.push_back({chain.id, ++steps, step});
  // Whoever brought it to its end has told them; giving back the hold of one that ended does not.
  if (children > 0 && is_end(state) && !chain.steps.empty())
    ended_.push_back({chain.id, state, chain.steps.back().time});
  return true;
}

void Changes::tell_children(const Ended& parent) {
  const auto [id, end, time] = parent;
  std::vector<std::int64_t> children;
  auto& row = database_.prepare("SELECT child FROM job_parents WHERE parent = $1 ORDER BY child");
  row.bind(1, raw(id));
  while (row.next()) children.push_back(row.integer(0));

  for (const std::int64_t child : children) {
    auto& update = database_.prepare(
        "UPDATE jobs SET waiting = waiting - $1 WHERE id = $2 RETURNING state, waiting");
    update.bind(1, end == JobState::job_finished ? 1 : 0).bind(2, child);
    const bool found = update.next();
    const auto state = found ? static_cast<JobState>(update.integer(0)) : JobState::failed;
    const std::int64_t waiting = found ? update.integer(1) : 0;
    update.reset();
    if (state != JobState::awaiting_parents) continue;
    if (end != JobState::job_finished) {
      const Step step{JobState::failed, time,
                      fmt::format("parent {} ended {}", raw(id), to_string(end))};
      change({.id = JobId{child}, .from = state, .steps = {&step, 1}});
    } else if (waiting == 0) {
      const Step step{JobState::ready, time, "all parents have finished"};
      made_ready_ = true;
      change({.id = JobId{child}, .from = state, .steps = {&step, 1}});
    }
  }
}

void Changes::commit() {
  if (!lines_.empty()) {
    auto rows = database_.insert_rows("job_history", {"job", "seq", "state", "time", "reason"});
    for (const auto& line : lines_) {
      rows->add(raw(line.job)).add(line.seq).add(raw(line.step.state)).add(line.step.time);
      rows->add(line.step.reason).end_row();
    }
    rows->finish();
  }
  transaction_.commit();
}

}  // namespace kolo::jobs

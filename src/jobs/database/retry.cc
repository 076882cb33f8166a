// Jobs that failed or were killed run again, with the jobs that failed only because of them.
#include <algorithm>
#include <set>

#include "base/errors.h"
#include "jobs/database/body.h"
#include "jobs/database/changes.h"

namespace kolo::jobs {
namespace {

bool failed_or_killed(JobState state) {
  return state == JobState::failed || state == JobState::user_killed;
}

/// Whether its history holds the state.
bool has_been(const std::vector<HistoryEntry>& history, JobState state) {
  return std::any_of(history.begin(), history.end(),
                     [state](const HistoryEntry& entry) { return entry.state == state; });
}

/// The jobs to retry, each after those that it waits for.
class RetryList {
 public:
  explicit RetryList(JobDatabase& jobs) : jobs_(jobs) {}

  /// With the jobs that follow it, of which there may be very many one after the other.
  void add(JobId id) {
    if (!known_.insert(id).second) return;
    std::size_t place = ids_.size();
    for (ids_.push_back(id); place < ids_.size(); ++place)
      for (const JobId child : jobs_.children(ids_[place]))
        if (failed_for_a_parent(child) && all_may_finish(child) && known_.insert(child).second)
          ids_.push_back(child);
  }
  [[nodiscard]] const std::vector<JobId>& ids() const noexcept { return ids_; }

  /// A parent that has failed and stays so; none if there is none.
  [[nodiscard]] std::optional<JobId> failed_parent(JobId id) {
    for (const JobId parent : jobs_.parents(id))
      if (!known_.contains(parent) && failed_or_killed(jobs_.job(parent).state)) return parent;
    return std::nullopt;
  }

 private:
  [[nodiscard]] bool all_may_finish(JobId id) { return !failed_parent(id); }
  /// It never began.
  [[nodiscard]] bool failed_for_a_parent(JobId id) {
    return jobs_.job(id).state == JobState::failed &&
           !has_been(jobs_.history(id), JobState::staged_in);
  }

  JobDatabase& jobs_;
  std::vector<JobId> ids_;
  std::set<JobId> known_;
};

std::int64_t waiting_of(store::Database& database, JobId id) {
  auto& row = database.prepare("SELECT waiting FROM jobs WHERE id = $1");
  row.bind(1, raw(id));
  const std::int64_t waiting = row.next() ? row.integer(0) : 0;
  row.reset();
  return waiting;
}

}  // namespace

std::int64_t JobDatabase::retry(const std::vector<JobId>& ids) {
  auto& database = *body_->store;
  // Whole: no parent may end between a look and a change.
  Changes changes(database, store::Locking::all);
  RetryList list(*this);
  // Parents have smaller numbers, mostly; a child alone may lack one that comes later.
  for (const JobId id : std::set(ids.begin(), ids.end())) list.add(id);
  for (const JobId id : list.ids()) {
    const Job job = this->job(id);
    if (!failed_or_killed(job.state))
      throw_error(ErrorCode::failed_precondition,
                  "job {} is {}; only jobs that are FAILED or USER_KILLED can be retried", raw(id),
                  to_string(job.state));
    if (const auto parent = list.failed_parent(id); parent && job.wait_for_parents)
      throw_error(ErrorCode::failed_precondition,
                  "job {0} waits for job {1}, which has failed; retry job {1}, and job {0} follows",
                  raw(id), raw(*parent));
    const JobState next = waiting_of(database, id) > 0 ? JobState::awaiting_parents
                          : has_been(history(id), JobState::preprocessed) ? JobState::restart_ready
                                                                          : JobState::ready;
    const Step step{next, body_->date(), "retried by the user"};
    changes.apply({.id = id, .from = job.state, .steps = {&step, 1}, .retries = -job.retries});
  }
  changes.commit();
  body_->notify();
  return static_cast<std::int64_t>(list.ids().size());
}

void JobDatabase::yield_place(JobId id) {
  body_->store->prepare("UPDATE jobs SET yields = 1 WHERE id = $1").bind(1, raw(id)).run();
  body_->notify();
}

}  // namespace kolo::jobs

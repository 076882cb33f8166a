#include "jobs/database/state_counts.h"

#include "jobs/database/body.h"

namespace kolo::jobs {
namespace {

/// Another number whenever another connection has committed something; absent: not known.
std::optional<std::int64_t> change_mark(store::Database& store) {
  if (store.kind() != "sqlite") return std::nullopt;
  auto& row = store.prepare("PRAGMA data_version");
  if (!row.next()) return std::nullopt;
  const std::int64_t mark = row.integer(0);
  row.reset();
  return mark;
}

}  // namespace

const std::vector<StateCount>& StateCounts::of(JobDatabase& jobs) {
  const auto mark = change_mark(*body_of(jobs).store);  // before: what changes meanwhile is new
  if (mark && mark == mark_) return counts_;
  counts_ = jobs.count_by_state();
  mark_ = mark;
  return counts_;
}

}  // namespace kolo::jobs

// How many jobs are in each state, cached for callers that ask often.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kolo/jobs.h"

namespace kolo::jobs {

/// Counting looks at every job. An SQLite database says whether somebody else has changed it, and
/// is counted again only then; a PostgreSQL server is asked each time.
class StateCounts {
 public:
  /// Of this database, each time.
  const std::vector<StateCount>& of(JobDatabase& jobs);
  /// To be called after a change by the same connection, which the database does not count.
  void forget() noexcept { mark_.reset(); }

 private:
  std::optional<std::int64_t> mark_;
  std::vector<StateCount> counts_;
};

}  // namespace kolo::jobs

// What the jobs of a workflow amount to: throughput, utilisation, errors.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kolo/jobs.h"

namespace kolo::jobs {

struct Statistics {
  std::map<JobState, std::int64_t> states;
  std::int64_t runs = 0;
  double first_start = 0, last_end = 0;    ///< of runs; seconds since 1970
  double busy_seconds = 0;                 ///< of nodes: runs times their nodes' shares
  double median_wait = 0, median_run = 0;  ///< from READY to RUNNING; RUNNING to its end
  std::vector<std::pair<std::string, std::int64_t>> errors;  ///< most frequent first

  [[nodiscard]] double seconds() const { return last_end - first_start; }
  [[nodiscard]] double jobs_per_second() const;
  /// Nodes in use on average.
  [[nodiscard]] double nodes_in_use() const { return seconds() > 0 ? busy_seconds / seconds() : 0; }
};

/// Reads the histories of all jobs of this workflow, or of those that match a pattern.
Statistics statistics(JobDatabase& jobs, const std::string& workflow);

}  // namespace kolo::jobs

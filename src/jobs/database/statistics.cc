#include "jobs/database/statistics.h"

#include <algorithm>

#include "jobs/database/body.h"

namespace kolo::jobs {
namespace {

double median_of(std::vector<double>& values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The first line, which is what errors have in common.
std::string headline(const std::string& reason) {
  return reason.substr(0, std::min(reason.find('\n'), std::size_t{100}));
}

}  // namespace

double Statistics::jobs_per_second() const {
  const auto finished = states.find(JobState::job_finished);
  return finished == states.end() || seconds() <= 0
             ? 0
             : static_cast<double>(finished->second) / seconds();
}

Statistics statistics(JobDatabase& jobs, const std::string& workflow) {
  Statistics result;
  std::vector<double> waits, runs;
  std::map<std::string, std::int64_t> errors;
  for (const auto& job : jobs.find({.workflow = workflow})) {
    ++result.states[job.state];
    const double share = static_cast<double>(job.num_nodes) / job.node_packing_count;
    double ready = -1, started = -1;
    for (const auto& entry : jobs.history(job.id)) {
      if (entry.state == JobState::ready) ready = entry.time;
      if (entry.state == JobState::running) {
        started = entry.time;
        if (ready >= 0) waits.push_back(started - ready);
        ready = -1;
        if (result.runs++ == 0 || started < result.first_start) result.first_start = started;
      } else if (started >= 0) {
        runs.push_back(entry.time - started);
        result.busy_seconds += share * runs.back();
        result.last_end = std::max(result.last_end, entry.time);
        started = -1;
      }
      if (entry.state == JobState::run_error || entry.state == JobState::failed ||
          entry.state == JobState::run_timeout)
        ++errors[std::string(to_string(entry.state)) + " " + headline(entry.reason)];
    }
  }
  result.median_wait = median_of(waits);
  result.median_run = median_of(runs);
  result.errors.assign(errors.begin(), errors.end());
  std::stable_sort(result.errors.begin(), result.errors.end(),
                   [](const auto& left, const auto& right) { return left.second > right.second; });
  return result;
}

}  // namespace kolo::jobs

// How many evaluations ran at each moment, and how well the workers were used.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "hps/results/results_csv.h"
#include "kolo/jobs.h"

namespace kolo::hps {

struct Workload {
  /// From timestamps[i] on, num_jobs_running[i] ran; the last is 0.
  std::vector<double> timestamps;
  std::vector<int> num_jobs_running;
  double busy_seconds = 0;  ///< of all together

  [[nodiscard]] double seconds() const;
  [[nodiscard]] int most() const;
  [[nodiscard]] double mean() const { return seconds() > 0 ? busy_seconds / seconds() : 0; }
  /// Between 0 and 1, unless more ran than there were workers.
  [[nodiscard]] double utilisation(int workers) const { return workers > 0 ? mean() / workers : 0; }
};

/// From when to when something ran. Those that end before they begin are left out.
Workload workload_of(const std::vector<std::pair<double, double>>& runs);

/// Throws failed_precondition for the older layout, which does not say when evaluations began.
Workload workload_of(const ResultsTable& table);

/// The runs of jobs whose workflow has this part, seconds since 1970; what runs still, runs until
/// `now`. Throws not_found when no such job has run.
Workload workload_of(jobs::JobDatabase& jobs, const std::string& workflow, double now);

/// {"timestamps": […], "num_jobs_running": […], …}.
Json workload_document(const Workload& workload, int workers);

}  // namespace kolo::hps

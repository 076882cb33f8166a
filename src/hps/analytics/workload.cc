#include "hps/analytics/workload.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/errors.h"

namespace kolo::hps {

double Workload::seconds() const {
  return timestamps.empty() ? 0 : timestamps.back() - timestamps.front();
}

int Workload::most() const {
  return num_jobs_running.empty()
             ? 0
             : *std::max_element(num_jobs_running.begin(), num_jobs_running.end());
}

Workload workload_of(const std::vector<std::pair<double, double>>& runs) {
  std::map<double, int> changes;  // what begins and ends at one moment is one change
  Workload workload;
  for (const auto& [begin, end] : runs) {
    if (!std::isfinite(begin) || !std::isfinite(end) || end < begin) continue;
    ++changes[begin];
    --changes[end];
    workload.busy_seconds += end - begin;
  }
  int running = 0;
  for (const auto& [time, change] : changes) {
    // A moment at which as many end as begin is no change, unless it is the first or last.
    if (change == 0 && time != changes.begin()->first && time != changes.rbegin()->first) continue;
    running += change;
    workload.timestamps.push_back(time);
    workload.num_jobs_running.push_back(running);
  }
  return workload;
}

Workload workload_of(const ResultsTable& table) {
  if (table.older)
    throw_error(ErrorCode::failed_precondition,
                "results of the older layout (elapsed_sec) do not say when evaluations began; "
                "m:timestamp_submit and m:timestamp_gather are needed");
  std::vector<std::pair<double, double>> runs;
  for (const ResultRow& row : table.rows) runs.emplace_back(row.submitted, row.gathered);
  return workload_of(runs);
}

Workload workload_of(jobs::JobDatabase& jobs, const std::string& workflow, double now) {
  std::vector<std::pair<double, double>> runs;
  for (const jobs::Job& job : jobs.find({.workflow = workflow})) {
    double began = -1;
    for (const jobs::HistoryEntry& entry : jobs.history(job.id)) {
      if (entry.state == jobs::JobState::running) {
        began = entry.time;
      } else if (began >= 0) {
        runs.emplace_back(began, entry.time);
        began = -1;
      }
    }
    if (began >= 0) runs.emplace_back(began, std::max(began, now));
  }
  if (runs.empty())
    throw_error(ErrorCode::not_found,
                "no job of a workflow with '{}' in its name has run; kolo ls wf shows them",
                workflow);
  return workload_of(runs);
}

Json workload_document(const Workload& workload, int workers) {
  Json json{{"timestamps", workload.timestamps},
            {"num_jobs_running", workload.num_jobs_running},
            {"seconds", workload.seconds()},
            {"busy_seconds", workload.busy_seconds},
            {"mean_jobs_running", workload.mean()}};
  if (workers > 0) {
    json["num_workers"] = workers;
    json["utilisation"] = workload.utilisation(workers);
  }
  return json;
}

}  // namespace kolo::hps

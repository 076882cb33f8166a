// Trials of a study as rows of results.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "hps/results/results_csv.h"
#include "store/study_records.h"

namespace kolo::hps {

/// A trial that has ended, as its study knows it.
struct EndedTrial {
  std::int64_t number = 0;
  Value config;
  Value last_result;              ///< nothing if it has reported nothing
  std::string error;              ///< "" = it ended well
  double started = 0, ended = 0;  ///< seconds since 1970
};

/// Those that have ended, in that order. `last_reports` are JSON, by the number of the trial.
std::vector<EndedTrial> ended_trials(
    const std::vector<store::TrialRecord>& trials,
    const std::unordered_map<std::int64_t, std::string>& last_reports);

/// Without its job_id. `metrics` are the names of the objectives; `began` is when the study did.
ResultRow row_of(const EndedTrial& trial, const std::vector<std::string>& metrics, double began);

/// The failure of a trial as results have it ("F_timeout", "F_error"), from the whole message.
std::string failure_name(const std::string& error);

}  // namespace kolo::hps

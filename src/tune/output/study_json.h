// A study as the pages about it draw it: report-html, and the dashboard.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "kolo/tune/analysis.h"
#include "store/study_store.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {

/// All that the database has about a study.
struct StudyData {
  store::StudyRecord study;
  StudySpec spec;
  Analysis analysis;
  std::vector<store::TrialRecord> records{};              ///< by number
  std::vector<std::vector<store::EventRecord>> events{};  ///< of each trial, by its number
  double until = 0;  ///< when something was heard of it for the last time
};

/// Throws not_found.
[[nodiscard]] StudyData read_study_data(store::StudyStore& store, const std::string& name);

/// The metrics that are numbers in some report, objectives first; not more than a page shows.
[[nodiscard]] std::vector<std::string> metrics_of(const StudyData& study);

/// Its name, settings, parameters and objectives; no trials.
[[nodiscard]] Json study_json(const StudyData& study, const std::vector<std::string>& metrics);

/// A trial with its configuration and the last value of each metric; no curves.
[[nodiscard]] Json trial_json(const StudyData& study, const TrialResult& trial,
                              const std::vector<std::string>& metrics);

/// [iteration, value] over the reports; of many reports, some and the last. Values that are not
/// finite are null.
[[nodiscard]] Json curve_json(const TrialResult& trial, const std::string& metric,
                              std::size_t most_points);

/// [parameter, share of the variance], the largest first. It takes a second for large studies.
[[nodiscard]] Json importance_json(const StudyData& study);

}  // namespace kolo::tune

// A study as the pages about it draw it: report-html, and the dashboard.
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "kolo/tune/analysis.h"
#include "store/study_store.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {

/// What the database has about a study, or about some of its trials.
struct StudyData {
  store::StudyRecord study;
  StudySpec spec;
  std::vector<TrialResult> trials{};
  std::vector<store::TrialRecord> records{};              ///< of the same trials
  std::vector<std::vector<store::EventRecord>> events{};  ///< of the same trials
  double until = 0;  ///< when something was heard of it for the last time
};

/// Throws not_found.
[[nodiscard]] StudyData read_study_data(store::StudyStore& store, const std::string& name);
/// With one trial alone. Throws not_found.
[[nodiscard]] StudyData read_trial_data(store::StudyStore& store, const std::string& name,
                                        std::int64_t number);

/// What lists and plots show of a trial.
struct TrialFacts {
  std::int64_t number = 0;
  std::string id;
  TrialStatus status{};
  bool stopped = false;
  double seconds = 0;
  std::int64_t iterations = 0;
  std::string why, error;
  Value::Dict config;   ///< flat
  Value::Dict metrics;  ///< flat: the last value of each
  Json runs;
};
[[nodiscard]] TrialFacts facts_of(const StudyData& study, std::size_t place,
                                  const std::vector<std::string>& metrics);

/// Objectives first, then other metrics by name; not more than a page shows.
[[nodiscard]] std::vector<std::string> metrics_shown(const std::vector<Objective>& objectives,
                                                     const std::set<std::string>& numbers);
/// The metrics that are numbers in the last report of some trial.
[[nodiscard]] std::vector<std::string> metrics_of(const StudyData& study);

/// Its name, settings, parameters and objectives; no trials.
[[nodiscard]] Json study_json(const store::StudyRecord& study, const StudySpec& spec,
                              const std::vector<std::string>& metrics);
[[nodiscard]] Json trial_json(const TrialFacts& facts, const StudySpec& spec,
                              const std::vector<std::string>& metrics);
/// [name, path] of the files of a trial that are there.
[[nodiscard]] Json files_json(const TrialResult& trial);
/// [begin, end, slots]: where a trial ran, from when to when. Pauses cut it into pieces.
[[nodiscard]] Json runs_json(const store::TrialRecord& record,
                             std::span<const store::EventRecord> events, double until);

/// [iteration, value] over the reports; of many reports, some and the last. Values that are not
/// finite are null.
[[nodiscard]] Json curve_json(const TrialResult& trial, const std::string& metric,
                              std::size_t most_points);
/// The same from the rows of the database.
[[nodiscard]] Json curve_json(std::span<const store::ReportRecord> reports,
                              const std::string& metric, std::size_t most_points);

/// [parameter, share of the variance], the largest first. It takes a second for large studies.
/// Records and trials are those of the same trials, in the same order.
[[nodiscard]] Json importance_json(const StudySpec& spec,
                                   std::span<const store::TrialRecord> records,
                                   std::span<const TrialResult> trials);

}  // namespace kolo::tune

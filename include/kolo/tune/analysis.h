// The results of a study, in memory: the database is not needed any more.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/analysis.h"
#include "kolo/tune/callback.h"
#include "kolo/tune/options.h"

namespace kolo::tune {

/// Rows with named columns.
struct Table {
  std::vector<std::string> columns{};
  std::vector<std::vector<Value>> rows{};

  /// RFC 4180, with a header; empty where there is nothing.
  [[nodiscard]] std::string to_csv() const;
  /// A list of objects.
  [[nodiscard]] std::string to_json() const;
};

struct SavedCheckpoint {
  std::filesystem::path path{};
  std::int64_t iteration = 0;
};

/// A trial with everything it reported.
struct TrialResult : TrialInfo {
  std::vector<Value> results{};                ///< in the order of reporting
  std::vector<SavedCheckpoint> checkpoints{};  ///< oldest first

  /// The values of a metric ("eval/loss"), where it was reported.
  [[nodiscard]] std::vector<double> metric(std::string_view path) const;
};

/// `mode` below is "min" or "max". What says "of the study" throws failed_precondition when the
/// study had no metric, naming the metrics that were reported, and not_found when no trial has a
/// value.
class Analysis {
 public:
  Analysis(std::string name, std::filesystem::path directory, std::vector<Objective> objectives,
           std::vector<TrialResult> trials, double elapsed_seconds);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::filesystem::path& directory() const noexcept { return directory_; }
  [[nodiscard]] std::span<const TrialResult> trials() const& noexcept { return trials_; }
  /// Of an analysis that is about to go, as in `for (auto& trial : run(…).trials())`.
  [[nodiscard]] std::vector<TrialResult> trials() && noexcept { return std::move(trials_); }
  [[nodiscard]] const std::vector<Objective>& objectives() const noexcept { return objectives_; }

  // By the metric and mode of the study.
  [[nodiscard]] const TrialResult& best_trial() const;
  [[nodiscard]] const Config& best_config() const { return best_trial().config; }
  [[nodiscard]] const std::filesystem::path& best_logdir() const { return best_trial().directory; }
  /// The checkpoint nearest to its best result. Throws not_found if it has none.
  [[nodiscard]] std::filesystem::path best_checkpoint() const;
  [[nodiscard]] const Value& best_result() const { return best_trial().last_result; }
  /// One row, nested keys joined with ".".
  [[nodiscard]] Table best_result_df() const;
  /// All results of the best trial.
  [[nodiscard]] Table best_dataframe() const;

  // By any metric.
  [[nodiscard]] const TrialResult& get_best_trial(std::string_view metric, std::string_view mode,
                                                  std::string_view scope = "last",
                                                  bool filter_nan_and_inf = true) const;
  [[nodiscard]] const Config& get_best_config(std::string_view metric, std::string_view mode,
                                              std::string_view scope = "last") const;
  [[nodiscard]] const std::filesystem::path& get_best_logdir(std::string_view metric,
                                                             std::string_view mode,
                                                             std::string_view scope = "last") const;
  [[nodiscard]] std::filesystem::path get_best_checkpoint(const TrialResult& trial,
                                                          std::string_view metric,
                                                          std::string_view mode) const;
  /// With the metric's value at each.
  [[nodiscard]] std::vector<std::pair<std::filesystem::path, double>> get_trial_checkpoints_paths(
      const TrialResult& trial, std::string_view metric) const;

  /// A row per trial: its last result, or with metric and mode its best one, and its
  /// configuration ("config/lr").
  [[nodiscard]] Table dataframe(std::string_view metric = "", std::string_view mode = "") const;
  /// Last results by trial id, and as a table.
  [[nodiscard]] std::map<std::string, Value> results() const;
  [[nodiscard]] Table results_df() const { return dataframe(); }
  /// Every result of every trial, by its directory.
  [[nodiscard]] std::map<std::string, Table> trial_dataframes() const;
  /// Configurations by directory; with `prefix` their keys begin with "config/".
  [[nodiscard]] std::map<std::string, Value> get_all_configs(bool prefix = false) const;
  /// Trials that are not dominated, where there are several objectives.
  [[nodiscard]] std::vector<const TrialResult*> pareto_front() const;
  [[nodiscard]] std::vector<const TrialResult*> errors() const;
  /// Trials by status, reports, seconds.
  [[nodiscard]] Value stats() const;

 private:
  [[nodiscard]] const Objective& objective() const;

  std::string name_;
  std::filesystem::path directory_;
  std::vector<Objective> objectives_;
  std::vector<TrialResult> trials_;
  double elapsed_seconds_ = 0;
};

}  // namespace kolo::tune

// Searches side by side: what is known of one, its curve, and pictures of several.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/svg_plot.h"
#include "hps/analytics/workload.h"
#include "hps/results/results_csv.h"

namespace kolo::hps {

/// One search, or one study.
struct SearchResults {
  std::string name;  ///< of the study, of the folder, or of the file without its ending
  ResultsTable table;
  int workers = 0;  ///< from init_infos.json; 0 = not known
};

/// `where` is a results.csv, a folder, or a study in a database: see open_results().
SearchResults read_search(const std::string& where);
/// Several; names that would be the same are made longer by what is above them.
std::vector<SearchResults> read_searches(const std::vector<std::string>& where);

/// One row of `kolo analytics compare`. What is not known is absent.
struct SearchSummaryRow {
  std::string name{};
  std::size_t evaluations = 0, failures = 0;
  std::optional<double> best{}, best_after{}, mean{}, utilisation{};
  std::optional<std::size_t> best_at{};  ///< after how many evaluations the best came, from 1
  double seconds = 0;
};

/// `after`: how many evaluations best_after looks at. Of several objectives `objective` is meant.
SearchSummaryRow summarize(const SearchResults& search, std::size_t after, std::size_t objective);
Json summary_json(const SearchSummaryRow& row, std::size_t after);

/// What a plot shows, along x and up.
struct PlotQuestion {
  std::string x = "evaluations";    ///< or time, or a column: lr, p:lr, m:NAME
  std::string y = "objective";      ///< or objective_1, or a column
  std::optional<double> optimum{};  ///< y is the distance from it, and best is least
  bool log_x = false, log_y = false;
  std::string title{};
};

/// Points and, of an objective along evaluations or time, the best so far. Throws not_found naming
/// the columns there are.
Plot plot_searches(const std::vector<SearchResults>& searches, const PlotQuestion& question);

/// Jobs running over time, with a line at the number of workers (0 = not known).
Plot plot_workload(const Workload& workload, int workers, const std::string& title);

}  // namespace kolo::hps

// The best evaluations of a search, and how to write them down.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "hps/results/results_csv.h"

namespace kolo::hps {

/// Rows that did not fail, the best first (at most k). Of several objectives: those that nobody
/// dominates, then those that only these dominate, and so on; the greater first objective decides
/// inside. The earlier one wins a tie.
std::vector<const ResultRow*> top_rows(const ResultsTable& table, std::size_t k);

/// "objective", or "objective_0" … of several.
std::string objective_column(std::size_t index, std::size_t objectives);

/// One document each, for -o file.json, .yaml and .csv.
std::string rows_as_json(const ResultsTable& table, const std::vector<const ResultRow*>& rows);
std::string rows_as_yaml(const ResultsTable& table, const std::vector<const ResultRow*>& rows);
/// In the columns of results.csv.
std::string rows_as_csv(const ResultsTable& table, const std::vector<const ResultRow*>& rows);

}  // namespace kolo::hps

#include "tune/output/trials_table.h"

#include <algorithm>
#include <cmath>

#include "tune/output/row_filter.h"

namespace kolo::tune {
namespace {

/// NaN has no place in an order.
bool is_missing(const Value& value) {
  return value.is_nothing() ||
         (value.is_number() && !value.is_integer() && std::isnan(value.as_number()));
}

}  // namespace

void keep_columns(Table& table, const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  for (const auto& name : names) places.push_back(column_of(table.columns, name));
  Table kept;
  for (const std::size_t place : places) kept.columns.push_back(table.columns[place]);
  for (const auto& row : table.rows) {
    auto& cells = kept.rows.emplace_back();
    for (const std::size_t place : places) cells.push_back(row[place]);
  }
  table = std::move(kept);
}

Table trials_table(const Analysis& analysis) {
  Table all = analysis.dataframe();
  if (const auto failed = analysis.errors(); !failed.empty()) {
    const bool is_metric =
        std::find(all.columns.begin(), all.columns.end(), "error") != all.columns.end();
    all.columns.emplace_back(is_metric ? "failure" : "error");
    for (auto& row : all.rows) row.emplace_back();
    for (const auto* trial : failed)
      all.rows[static_cast<std::size_t>(trial->number)].back() = trial->error;
  }
  std::vector<std::string> order = {"trial_id", "status", "training_iteration", "time_total_s"};
  for (const auto& objective : analysis.objectives()) order.push_back(objective.metric);
  for (const auto& column : all.columns)
    if (column.starts_with("config/")) order.push_back(column);
  for (const auto& column : all.columns)
    if (column != "logdir" && column != "timestamp" && column != "time_this_iter_s")
      order.push_back(column);
  order.emplace_back("logdir");
  std::vector<std::string> once;
  for (const auto& name : order)
    if (std::find(all.columns.begin(), all.columns.end(), name) != all.columns.end() &&
        std::find(once.begin(), once.end(), name) == once.end())
      once.push_back(name);
  keep_columns(all, once);
  return all;
}

void sort_rows(Table& table, const std::vector<std::string>& columns, bool descending) {
  std::vector<std::size_t> by;
  for (const auto& name : columns) by.push_back(column_of(table.columns, name));
  std::stable_sort(table.rows.begin(), table.rows.end(), [&](const auto& left, const auto& right) {
    for (const std::size_t column : by) {
      if (is_missing(left[column]) != is_missing(right[column])) return is_missing(right[column]);
      if (is_missing(left[column]) || left[column] == right[column]) continue;
      return descending ? right[column] < left[column] : left[column] < right[column];
    }
    return false;
  });
}

}  // namespace kolo::tune

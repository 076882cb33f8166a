// kolo trials: the trials of a study, filtered and sorted.
#include <fmt/format.h>

#include <algorithm>

#include "base/text_table.h"
#include "commands.h"
#include "row_filter.h"
#include "study_store.h"
#include "tune/study/study_reader.h"

namespace kolo::app {
namespace {

using tune::Table;
using tune::Value;

struct TrialsOptions {
  std::string study, storage, sort, columns;
  bool desc = false, json = false, csv = false;
  std::vector<std::string> filter;
  std::optional<int> limit;
  void declare(OptionSet& set);
};
constexpr Option<TrialsOptions> kTrialsRows[] = {
    {&TrialsOptions::sort, "sort", "COLUMNS", "Sort by these columns, separated by commas.",
     fallback("the number of the trial")},
    {&TrialsOptions::desc, "desc", "", "Sort from large to small."},
    {&TrialsOptions::filter, "filter", "CONDITION",
     "Print only trials for which a condition holds, as in 'loss < 0.3 and kind == sgd'; it "
     "compares with ==, !=, <, <=, > or >=."},
    {&TrialsOptions::columns, "columns", "COLUMNS",
     "Print these columns alone, separated by commas.",
     fallback("all but long ones, such as logdir; --json and --csv have all")},
    {&TrialsOptions::limit, "limit", "N", "Print at most N trials.", least(0)},
    {&TrialsOptions::csv, "csv", "", "Print comma-separated values instead of a table."},
};
void TrialsOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyArgument, &study);
  set.add("Options", kTrialsRows, *this);
  set.add("Options", kJsonOutput, &json);
  set.add("Options", kStorage, &storage);
}

void keep_columns(Table& table, const std::vector<std::string>& names) {
  std::vector<std::size_t> places;
  for (const auto& name : names) places.push_back(column_of(table, name));
  Table kept;
  for (const std::size_t place : places) kept.columns.push_back(table.columns[place]);
  for (const auto& row : table.rows) {
    auto& cells = kept.rows.emplace_back();
    for (const std::size_t place : places) cells.push_back(row[place]);
  }
  table = std::move(kept);
}

/// Of a text, what fits beside other columns.
std::string brief(const std::string& text) {
  constexpr std::size_t kLetters = 60;
  return shortened(text.substr(0, text.find('\n')), kLetters);
}

/// For people: without paths and what can be derived, parameters by their own names.
Table for_people(Table table) {
  constexpr std::string_view kLong[] = {"logdir", "done", "trial_name", "experiment_tag"};
  std::vector<std::string> names;
  for (const auto& column : table.columns)
    if (std::find(std::begin(kLong), std::end(kLong), column) == std::end(kLong))
      names.push_back(column);
  keep_columns(table, names);
  const auto has = [&table](const std::string& name) {
    return std::find(table.columns.begin(), table.columns.end(), name) != table.columns.end();
  };
  for (auto& row : table.rows)
    for (auto& cell : row)
      if (cell.is_string()) cell = brief(cell.as_string());
  constexpr std::string_view kPrefix = "config/";
  for (auto& column : table.columns)
    if (column.starts_with(kPrefix) && !has(column.substr(kPrefix.size())))
      column = column.substr(kPrefix.size());
  return table;
}

/// What one wants to see first: number, status, metrics, parameters.
Table trials_table(const tune::Analysis& analysis) {
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

/// NaN has no place in an order.
bool is_missing(const tune::Value& value) {
  return value.is_nothing() ||
         (value.is_number() && !value.is_integer() && std::isnan(value.as_number()));
}

int run_trials(TrialsOptions& options) {
  const OpenStore open(options.storage);
  Table table = trials_table(tune::read_study(*open.store, options.study));
  for (const auto& conditions : options.filter) keep_rows(table, conditions);
  if (!options.sort.empty()) {
    std::vector<std::size_t> by;
    for (const auto& name : cli::split(options.sort, ',')) by.push_back(column_of(table, name));
    std::stable_sort(
        table.rows.begin(), table.rows.end(), [&](const auto& left, const auto& right) {
          for (const std::size_t column : by) {
            if (is_missing(left[column]) != is_missing(right[column]))
              return is_missing(right[column]);  // rows without a value last
            if (is_missing(left[column]) || left[column] == right[column]) continue;
            return options.desc ? right[column] < left[column] : left[column] < right[column];
          }
          return false;
        });
  }
  if (options.limit)
    table.rows.resize(std::min(table.rows.size(), static_cast<std::size_t>(*options.limit)));
  if (!options.columns.empty()) keep_columns(table, cli::split(options.columns, ','));
  if (options.json)
    fmt::print("{}", table.to_json());
  else if (options.csv)
    fmt::print("{}", table.to_csv());
  else
    print_table(options.columns.empty() ? for_people(std::move(table)) : table);
  return 0;
}

}  // namespace

constinit const Command kTrials{
    .name = "trials",
    .summary = "List the trials of a study",
    .examples = "kolo trials mnist --sort loss --filter 'lr < 0.01' --limit 10\n",
    .options = declared<TrialsOptions>,
    .run = run_declared<TrialsOptions, run_trials>,
};

}  // namespace kolo::app

// kolo trials: the trials of a study, filtered and sorted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/errors.h"
#include "commands.h"
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
     "Print only trials for which a condition holds, as in 'loss < 0.3'; it compares with ==, !=, "
     "<, <=, > or >=."},
    {&TrialsOptions::columns, "columns", "COLUMNS",
     "Print these columns alone, separated by commas.", fallback("all that matter")},
    {&TrialsOptions::limit, "limit", "N", "Print at most N trials.", least(0)},
    {&TrialsOptions::csv, "csv", "", "Print comma-separated values instead of a table."},
};
void TrialsOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyArgument, &study);
  set.add("Options", kTrialsRows, *this);
  set.add("Options", kJsonOutput, &json);
  set.add("Options", kStorage, &storage);
}

std::size_t column_of(const Table& table, const std::string& name) {
  for (const std::string& candidate : {name, "config/" + name}) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), candidate);
    if (found != table.columns.end())
      return static_cast<std::size_t>(found - table.columns.begin());
  }
  throw_error(ErrorCode::invalid_argument, "there is no column '{}'; known: {}", name,
              fmt::join(table.columns, ", "));
}

/// "loss < 0.3"
void filter(Table& table, const std::string& condition) {
  constexpr std::array<std::string_view, 6> kOperators = {"==", "!=", "<=", ">=", "<", ">"};
  for (const auto op : kOperators) {
    const auto at = condition.find(op);
    if (at == std::string::npos) continue;
    const auto trimmed = [](std::string text) {
      text.erase(0, text.find_first_not_of(' '));
      text.erase(text.find_last_not_of(' ') + 1);
      return text;
    };
    const auto column = column_of(table, trimmed(condition.substr(0, at)));
    const std::string wanted = trimmed(condition.substr(at + op.size()));
    char* end = nullptr;
    const double number = std::strtod(wanted.c_str(), &end);
    const bool is_number = !wanted.empty() && *end == '\0';
    std::erase_if(table.rows, [&](const std::vector<Value>& row) {
      const Value& value = row[column];
      if (value.is_nothing()) return true;
      int order = 0;
      if (value.is_number() && is_number) {
        if (std::isnan(value.as_number())) return true;
        order = value.as_number() < number ? -1 : value.as_number() > number ? 1 : 0;
      } else {
        order = cell_text(value).compare(wanted);
      }
      const bool holds = op == "=="   ? order == 0
                         : op == "!=" ? order != 0
                         : op == "<=" ? order <= 0
                         : op == ">=" ? order >= 0
                         : op == "<"  ? order < 0
                                      : order > 0;
      return !holds;
    });
    return;
  }
  throw_error(ErrorCode::invalid_argument,
              "--filter '{}': must be a comparison, as in 'loss < 0.3'", condition);
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

/// What one wants to see first: number, status, metrics, parameters.
Table trials_table(const tune::Analysis& analysis) {
  Table all = analysis.dataframe();
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
  for (const auto& condition : options.filter) filter(table, condition);
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
    print_table(table);
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

// kolo trials: the trials of a study, filtered and sorted.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/text_table.h"
#include "base/utf8.h"
#include "commands.h"
#include "study_store.h"
#include "tune/output/row_filter.h"
#include "tune/output/trials_table.h"
#include "tune/study/study_reader.h"

namespace kolo::app {
namespace {

using tune::Table;

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
  set.add("Arguments", kStudyOrNewest, &study);
  set.add("Options", kTrialsRows, *this);
  set.add("Options", kJsonOutput, &json);
  set.add("Options", kStorage, &storage);
}

/// Of a text, what fits beside other columns, on one line.
std::string brief(std::string text) {
  constexpr std::size_t kLetters = 60;
  std::replace(text.begin(), text.end(), '\n', ' ');
  return shortened(text, kLetters);
}

/// For people: without paths and what can be derived, parameters by their own names.
Table for_people(Table table) {
  constexpr std::string_view kLong[] = {"logdir", "done", "trial_name", "experiment_tag"};
  std::vector<std::string> names;
  for (const auto& column : table.columns)
    if (std::find(std::begin(kLong), std::end(kLong), column) == std::end(kLong))
      names.push_back(column);
  tune::keep_columns(table, names);
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

int run_trials(TrialsOptions& options) {
  const OpenStore open(options.storage);
  Table table = tune::trials_table(
      tune::read_study(*open.store, study_or_newest(*open.store, options.study)));
  for (const auto& conditions : options.filter) tune::keep_rows(table, conditions);
  if (!options.sort.empty()) tune::sort_rows(table, cli::split(options.sort, ','), options.desc);
  if (options.limit)
    table.rows.resize(std::min(table.rows.size(), static_cast<std::size_t>(*options.limit)));
  if (!options.columns.empty()) tune::keep_columns(table, cli::split(options.columns, ','));
  if (options.json)
    fmt::print("{}", table.to_json());
  else if (options.csv)
    fmt::print("{}",
               ::isatty(STDOUT_FILENO) != 0 ? printable_lines(table.to_csv()) : table.to_csv());
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

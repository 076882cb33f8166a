// kolo studies, trials, best, stop, export: studies as the database has them.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/errors.h"
#include "base/files.h"
#include "base/text_table.h"
#include "base/utf8.h"
#include "commands.h"
#include "export_optuna.h"
#include "study_store.h"
#include "tune/output/studies_table.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/study/study_requests.h"
#include "tune/trial/shown_config.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {
namespace {

using tune::Table;
using tune::Value;

struct StudiesOptions {
  std::string storage;
  bool json = false;
  void declare(OptionSet& set) {
    set.add("Options", kJsonOutput, &json);
    set.add("Options", kStorage, &storage);
  }
};

struct BestOptions {
  std::string study, storage, metric, mode, scope = "last";
  bool json = false;
  void declare(OptionSet& set);
};
constexpr Option<BestOptions> kBestRows[] = {
    {&BestOptions::metric, "metric", "NAME", "Compare trials by this metric.",
     fallback("the metric of the study")},
    {&BestOptions::mode, "mode", "min|max",
     "Look for the smallest (min) or the largest (max) value.", fallback("the mode of the study"),
     choices("min|max")},
    {&BestOptions::scope, "scope", "SCOPE",
     "Compare the last value of each trial (last), its best one (all), the mean of all (avg), or "
     "the mean of the last 5 or 10 (last-5-avg, last-10-avg).",
     choices("last|all|avg|last-5-avg|last-10-avg")},
};
void BestOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyOrNewest, &study);
  set.add("Options", kBestRows, *this);
  set.add("Options", kJsonOutput, &json);
  set.add("Options", kStorage, &storage);
}

struct StopOptions {
  std::string study, trial, storage;
  void declare(OptionSet& set);
};
constexpr Option<StopOptions> kStopRows[] = {
    {&StopOptions::trial, "TRIAL", "", "Stop this trial alone, given by its number or its id.",
     is_optional},
};
void StopOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyArgument, &study);
  set.add("Arguments", kStopRows, *this);
  set.add("Options", kStorage, &storage);
}

struct ExportOptions {
  std::string study, storage, output, format;
  bool reports = false;
  void declare(OptionSet& set);
};
constexpr Option<ExportOptions> kExportRows[] = {
    {&ExportOptions::output, "output", "FILE", "Write to this file.", aliases("-o"),
     fallback("standard output")},
    {&ExportOptions::format, "format", "csv|json|optuna",
     "Write comma-separated values, JSON, or a journal file of Optuna.",
     fallback("by the ending of the file: .csv or .json"), choices("csv|json|optuna")},
    {&ExportOptions::reports, "reports", "", "Write a row for each report, not for each trial."},
};
void ExportOptions::declare(OptionSet& set) {
  set.add("Arguments", kStudyOrNewest, &study);
  set.add("Options", kExportRows, *this);
  set.add("Options", kStorage, &storage);
}

int run_studies(StudiesOptions& options) {
  const OpenStore open(options.storage);
  const Table table = tune::studies_table(*open.store);
  if (options.json)
    fmt::print("{}", table.to_json());
  else
    print_table(table);
  return 0;
}

/// Behind the value that a trial was chosen for, where that is not simply its last one.
std::string how_it_was_chosen(const std::string& scope, const std::vector<double>& values) {
  if (scope == "last" || values.size() < 2) return "";
  const std::string last = short_number(values.back());
  if (scope == "all")
    return fmt::format(" (best of {} reports; the last is {})", values.size(), last);
  return fmt::format(" ({} over {} reports; the last is {})", scope, values.size(), last);
}

int run_best(BestOptions& options) {
  const OpenStore open(options.storage);
  const auto analysis = tune::read_study(*open.store, study_or_newest(*open.store, options.study));
  std::string &metric = options.metric, &mode = options.mode;
  if (!analysis.objectives().empty()) {
    const auto& objective = analysis.objectives().front();
    if (metric.empty()) metric = objective.metric;
    if (mode.empty()) mode = objective.direction == search::Direction::minimize ? "min" : "max";
  } else if (metric.empty()) {
    static_cast<void>(analysis.best_trial());  // says what there is
  }
  const auto& best = analysis.get_best_trial(metric, mode, options.scope);
  const auto direction = mode == "min" ? search::Direction::minimize : search::Direction::maximize;
  const auto values = best.metric(metric);
  const double value =
      search::value_in_scope(values, direction, search::parse_scope(options.scope)).value();
  if (options.json) {
    Value::Dict fields{{"trial", best.number},       {"id", best.id},
                       {"metric", metric},           {"value", value},
                       {"scope", options.scope},     {"config", tune::shown_config(best.config)},
                       {"result", best.last_result}, {"logdir", best.directory.string()}};
    if (best.checkpoint) fields.emplace("checkpoint", best.checkpoint->string());
    fmt::print("{}\n", tune::encode(Value(std::move(fields))));
    return 0;
  }
  fmt::print("trial      {}\n{:<10} {}{}\nconfig     {}\nlogdir     {}\n", best.id,
             printable(metric), short_number(value), how_it_was_chosen(options.scope, values),
             printable(short_text(tune::shown_config(best.config))), best.directory.string());
  if (best.checkpoint) fmt::print("checkpoint {}\n", best.checkpoint->string());
  return 0;
}

int run_stop(StopOptions& options) {
  const OpenStore open(options.storage);
  const auto study = open.store->at(options.study);
  std::optional<std::int64_t> trial;
  if (!options.trial.empty()) trial = trial_number(*open.store, study, options.trial);
  tune::request_stop(*open.store, study, trial);
  return 0;
}

/// By the name of the file, where it is not said.
std::string format_of(const ExportOptions& options) {
  if (!options.format.empty()) return options.format;
  const std::string ending = std::filesystem::path(options.output).extension().string();
  if (ending == ".json") return "json";
  if (ending.empty() || ending == ".csv") return "csv";
  throw_error(
      ErrorCode::invalid_argument,
      "-o {}: files of the kind '{}' cannot be written; name the file .csv or .json, or say "
      "which of them it is with --format",
      options.output, ending);
}

int run_export(ExportOptions& options) {
  const OpenStore open(options.storage);
  const std::string format = format_of(options);
  const auto write = [&options](const std::string& text) {
    if (options.output.empty())
      fmt::print("{}", ::isatty(STDOUT_FILENO) != 0 ? printable_lines(text) : text);
    else
      write_output_file(options.output, text);
    return 0;
  };
  if (format == "optuna" && options.reports)
    throw_error(ErrorCode::invalid_argument,
                "--reports is for tables; a journal file of Optuna has all reports");
  const std::string study = study_or_newest(*open.store, options.study);
  if (format == "optuna") return write(optuna_journal(*open.store, study));
  const auto analysis = tune::read_study(*open.store, study);
  Table table = analysis.dataframe();
  if (options.reports) {
    table = {};
    for (auto& [directory, part] : analysis.trial_dataframes()) {
      for (const auto& column : part.columns)
        if (std::find(table.columns.begin(), table.columns.end(), column) == table.columns.end())
          table.columns.push_back(column);
    }
    for (const auto& trial : analysis.trials())
      for (const auto& result : trial.results) {
        const auto flat = tune::flatten(result);
        auto& row = table.rows.emplace_back();
        for (const auto& column : table.columns) {
          const auto found = flat.find(column);
          row.push_back(found == flat.end() ? Value() : found->second);
        }
      }
  }
  return write(format == "json" ? table.to_json() : table.to_csv());
}

}  // namespace

constinit const Command kStudies{
    .name = "studies",
    .summary = "List the studies in the database and their state",
    .examples = "kolo studies\n",
    .options = declared<StudiesOptions>,
    .run = run_declared<StudiesOptions, run_studies>,
};

constinit const Command kBest{
    .name = "best",
    .summary = "Print the best trial of a study and its hyperparameters",
    .examples = "kolo best mnist --json\n",
    .options = declared<BestOptions>,
    .run = run_declared<BestOptions, run_best>,
};

constinit const Command kStop{
    .name = "stop",
    .summary = "Stop a running study, or one of its trials",
    .examples = "kolo stop mnist\n",
    .options = declared<StopOptions>,
    .run = run_declared<StopOptions, run_stop>,
};

constinit const Command kExport{
    .name = "export",
    .summary = "Write the trials of a study as comma-separated values, as JSON or for Optuna",
    .examples = "kolo export mnist -o trials.csv\nkolo export mnist --format optuna -o mnist.log\n",
    .options = declared<ExportOptions>,
    .run = run_declared<ExportOptions, run_export>,
};

}  // namespace kolo::app

// kolo studies, trials, best, stop, export: studies as the database has them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/errors.h"
#include "base/files.h"
#include "commands.h"
#include "study_settings.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/trial/trial_names.h"

namespace kolo::app {
namespace {

using tune::Table;
using tune::Value;

constexpr Setting kJsonSetting{"json", "", "", "", "", "as JSON"};

constexpr Setting kStudiesSettings[] = {kStorageSetting, kJsonSetting, kHelpSetting};
constexpr Setting kTrialsSettings[] = {
    kStorageSetting,
    {"sort", "", "", "COLUMNS", "the number", "separated by commas"},
    {"desc", "", "", "", "", "the greatest first"},
    {"filter", "", "", "COLUMN OP VALUE", "",
     "only rows for which it holds; OP is ==, !=, <, <=, > or >=; may be given several times",
     true},
    {"columns", "", "", "COLUMNS", "all that matter", "separated by commas"},
    {"limit", "", "", "N", "", "rows at most"},
    kJsonSetting,
    {"csv", "", "", "", "", "as comma-separated values"},
    kHelpSetting,
};
constexpr Setting kBestSettings[] = {
    kStorageSetting,
    {"metric", "", "", "NAME", "the study's", "to judge by"},
    {"mode", "", "", "min|max", "the study's", "of the metric"},
    {"scope", "", "", "last|all|avg|last-5-avg|last-10-avg", "last", "which results count"},
    kJsonSetting,
    kHelpSetting,
};
constexpr Setting kStopSettings[] = {kStorageSetting, kHelpSetting};
constexpr Setting kExportSettings[] = {
    kStorageSetting,
    {"output", "-o", "", "FILE", "standard output", "where to"},
    {"format", "", "", "csv|json", "by the file's name, else csv", ""},
    {"reports", "", "", "", "", "a row for each report instead of each trial"},
    kHelpSetting,
};

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::string cell(const Value& value) {
  if (value.is_nothing()) return "";
  if (value.is_number() && !value.is_integer()) return fmt::format("{:.6g}", value.as_number());
  return value.is_string() ? value.as_string() : value.to_string();
}

void print_columns(const Table& table) {
  std::vector<std::size_t> widths;
  for (const auto& column : table.columns) widths.push_back(column.size());
  for (const auto& row : table.rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], cell(row[i]).size());
  const auto print_row = [&](auto&& text_of) {
    std::string line;
    for (std::size_t i = 0; i < widths.size(); ++i)
      line += fmt::format("{}{:<{}}", i > 0 ? "  " : "", text_of(i), widths[i]);
    while (!line.empty() && line.back() == ' ') line.pop_back();
    fmt::print("{}\n", line);
  };
  print_row([&](std::size_t i) { return table.columns[i]; });
  for (const auto& row : table.rows) print_row([&](std::size_t i) { return cell(row[i]); });
}

std::size_t column_of(const Table& table, const std::string& name) {
  for (const std::string& candidate : {name, "config/" + name}) {
    const auto found = std::find(table.columns.begin(), table.columns.end(), candidate);
    if (found != table.columns.end())
      return static_cast<std::size_t>(found - table.columns.begin());
  }
  std::string known;
  for (const auto& column : table.columns) known += (known.empty() ? "" : ", ") + column;
  throw_error(ErrorCode::invalid_argument, "there is no column '{}'; there are {}", name, known);
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
        order = cell(value).compare(wanted);
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
  throw_error(ErrorCode::invalid_argument, "--filter '{}': COLUMN OP VALUE is needed", condition);
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

void write_out(const std::optional<std::string>& file, const std::string& text) {
  if (file)
    write_file_atomically(*file, text);
  else
    fmt::print("{}", text);
}

}  // namespace

int run_command_studies(const Arguments& arguments) {
  const ParsedCommand command(kStudiesSettings, arguments, "kolo studies [OPTIONS]", 0, 0);
  if (command.help) return 0;
  const OpenStore open(command.settings);
  Table table{{"name", "state", "trials", "done", "failed", "elapsed_s", "created"}, {}};
  for (const auto& study : open.store->studies()) {
    std::int64_t done = 0, failed = 0;
    const auto trials = open.store->trials(study.id);
    for (const auto& trial : trials) {
      done += trial.ended_seq ? 1 : 0;
      failed += trial.status == store::TrialStatus::error ? 1 : 0;
    }
    constexpr std::string_view kStates[] = {"interrupted", "finished", "stopped", "failed"};
    const bool under_way = open.store->holder(study.id, seconds_now()).has_value();
    table.rows.push_back(
        {study.name,
         std::string(under_way ? "running" : kStates[static_cast<std::size_t>(study.status)]),
         trials.size(), done, failed, std::round(study.elapsed * 10) / 10,
         tune::date_text(study.created)});
  }
  if (command.settings.flag("json"))
    fmt::print("{}", table.to_json());
  else
    print_columns(table);
  return 0;
}

int run_command_trials(const Arguments& arguments) {
  const ParsedCommand command(kTrialsSettings, arguments, "kolo trials [OPTIONS] STUDY", 1, 1);
  if (command.help) return 0;
  const OpenStore open(command.settings);
  Table table = trials_table(tune::read_study(*open.store, command.words[0]));
  for (const auto& condition : command.settings.texts("filter")) filter(table, condition);
  if (auto columns = command.settings.text("sort")) {
    std::vector<std::size_t> by;
    for (const auto& name : split(*columns, ',')) by.push_back(column_of(table, name));
    const bool descending = command.settings.flag("desc");
    std::stable_sort(
        table.rows.begin(), table.rows.end(), [&](const auto& left, const auto& right) {
          for (const std::size_t column : by) {
            if (left[column].is_nothing() != right[column].is_nothing())
              return right[column].is_nothing();  // rows without a value last
            if (left[column] == right[column]) continue;
            return descending ? right[column] < left[column] : left[column] < right[column];
          }
          return false;
        });
  }
  if (auto limit = command.settings.integer("limit", 0, 1'000'000'000))
    table.rows.resize(std::min(table.rows.size(), static_cast<std::size_t>(*limit)));
  if (auto columns = command.settings.text("columns")) keep_columns(table, split(*columns, ','));
  if (command.settings.flag("json"))
    fmt::print("{}", table.to_json());
  else if (command.settings.flag("csv"))
    fmt::print("{}", table.to_csv());
  else
    print_columns(table);
  return 0;
}

int run_command_best(const Arguments& arguments) {
  const ParsedCommand command(kBestSettings, arguments, "kolo best [OPTIONS] STUDY", 1, 1);
  if (command.help) return 0;
  const OpenStore open(command.settings);
  const auto analysis = tune::read_study(*open.store, command.words[0]);
  std::string metric = command.settings.text("metric").value_or("");
  std::string mode = command.settings.text("mode").value_or("");
  if (!analysis.objectives().empty()) {
    const auto& objective = analysis.objectives().front();
    if (metric.empty()) metric = objective.metric;
    if (mode.empty()) mode = objective.direction == search::Direction::minimize ? "min" : "max";
  } else if (metric.empty()) {
    static_cast<void>(analysis.best_trial());  // says what there is
  }
  const auto& best =
      analysis.get_best_trial(metric, mode, command.settings.text("scope").value_or("last"));
  if (command.settings.flag("json")) {
    Value::Dict fields{{"trial", best.number},
                       {"id", best.id},
                       {"config", best.config},
                       {"result", best.last_result},
                       {"logdir", best.directory.string()}};
    if (best.checkpoint) fields.emplace("checkpoint", best.checkpoint->string());
    fmt::print("{}\n", tune::encode(Value(std::move(fields))));
    return 0;
  }
  fmt::print("trial      {}\n{:<10} {}\nconfig     {}\nlogdir     {}\n", best.id, metric,
             best.last_result.at_path(metric).to_string(), best.config.to_string(),
             best.directory.string());
  if (best.checkpoint) fmt::print("checkpoint {}\n", best.checkpoint->string());
  return 0;
}

int run_command_stop(const Arguments& arguments) {
  const ParsedCommand command(kStopSettings, arguments, "kolo stop [OPTIONS] STUDY [TRIAL]", 1, 2);
  if (command.help) return 0;
  const OpenStore open(command.settings);
  const auto study = open.store->at(command.words[0]);
  if (!open.store->holder(study.id, seconds_now()))
    throw_error(ErrorCode::failed_precondition, "study {} is not running", study.name);
  std::optional<std::int64_t> trial;
  if (command.words.size() > 1) trial = trial_number(*open.store, study, command.words[1]);
  open.store->request(study.id, "stop", trial);
  return 0;
}

int run_command_export(const Arguments& arguments) {
  const ParsedCommand command(kExportSettings, arguments, "kolo export [OPTIONS] STUDY", 1, 1);
  if (command.help) return 0;
  const OpenStore open(command.settings);
  const auto analysis = tune::read_study(*open.store, command.words[0]);
  const auto file = command.settings.text("output");
  std::string format =
      command.settings.text("format").value_or(file && file->ends_with(".json") ? "json" : "csv");
  if (format != "csv" && format != "json")
    throw_error(ErrorCode::invalid_argument, "--format must be csv or json, not '{}'", format);
  Table table = analysis.dataframe();
  if (command.settings.flag("reports")) {
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
  write_out(file, format == "json" ? table.to_json() : table.to_csv());
  return 0;
}

}  // namespace kolo::app

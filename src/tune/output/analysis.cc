// All answers are computed from the trials in memory when they are asked for, and nothing is
// cached. The best trial is found from one curve per trial, so it costs time in proportion to all
// reports. Trial N must stand at place N of the list. The value at a checkpoint is that of the last
// report of its iteration: it is searched from the end, so that a later report of the same
// iteration counts. Tables take the union of the keys of all rows as columns, and leave a cell
// empty where a row lacks the key.
#include "kolo/tune/analysis.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/csv.h"
#include "base/errors.h"
#include "base/metric_order.h"
#include "tune/output/result_loggers.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/shown_config.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

using search::Curve;
using search::Direction;
using search::TrialId;

Direction direction_of(std::string_view mode) {
  if (mode == "min") return Direction::minimize;
  if (mode == "max") return Direction::maximize;
  throw_error(ErrorCode::invalid_argument, "mode must be min or max, not '{}'", mode);
}

std::string_view mode_of(Direction direction) {
  return direction == Direction::minimize ? "min" : "max";
}

/// Metrics that reports brought of their own, for messages.
std::string reported_metrics(std::span<const TrialResult> trials) {
  static const std::set<std::string, std::less<>> kAdded = {
      "training_iteration", "time_total_s", "time_this_iter_s", "timestamp", "trial_id", "done"};
  std::set<std::string> names;
  for (const auto& trial : trials)
    for (const auto& [key, value] : flatten(trial.last_result))
      if (!kAdded.contains(key) && value.is_number()) names.insert(key);
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

[[noreturn]] void throw_no_best(const std::string& study, std::string_view metric,
                                std::span<const Curve> curves, const std::string& reported) {
  const auto with_values = std::count_if(curves.begin(), curves.end(),
                                         [](const Curve& curve) { return !curve.values.empty(); });
  if (with_values == 0)
    throw_error(ErrorCode::not_found,
                "study {}: no trial reported a number '{}'; metrics that were reported: {}", study,
                metric, reported);
  throw_error(ErrorCode::not_found,
              "study {}: no trial has a finite value of '{}'; all {} that reported it came to nan "
              "or infinity",
              study, metric, with_values);
}

std::optional<double> number_at(const Value& result, std::string_view path) {
  const Value* value = result.find_path(path);
  return value != nullptr && value->is_number() ? std::optional(value->as_number()) : std::nullopt;
}

/// A table of flat rows: the columns are all keys, sorted.
Table table_of(const std::vector<Value::Dict>& rows) {
  std::set<std::string> keys;
  for (const auto& row : rows)
    for (const auto& [key, value] : row) keys.insert(key);
  Table table;
  table.columns.assign(keys.begin(), keys.end());
  for (const auto& row : rows) {
    auto& cells = table.rows.emplace_back();
    for (const auto& column : table.columns) {
      const auto found = row.find(column);
      cells.push_back(found == row.end() ? Value() : found->second);
    }
  }
  return table;
}

}  // namespace

std::string_view to_string(TrialStatus status) noexcept {
  constexpr std::string_view kNames[] = {"PENDING", "RUNNING", "PAUSED", "TERMINATED", "ERROR"};
  return kNames[static_cast<std::size_t>(status)];
}

std::string Table::to_csv() const {
  std::string text;
  const auto add = [&text](const auto& fields) {
    for (std::size_t i = 0; i < fields.size(); ++i)
      text += (i > 0 ? "," : "") + csv_field(Value(fields[i]));
    text += "\n";
  };
  add(columns);  // metrics are named by trials
  for (const auto& row : rows) add(row);
  return text;
}

std::string Table::to_json() const {
  std::string text = "[";
  for (std::size_t r = 0; r < rows.size(); ++r) {
    Value::Dict object;
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (!rows[r][i].is_nothing()) object.emplace(columns[i], rows[r][i]);
    text += (r > 0 ? ",\n " : "\n ") + encode(Value(std::move(object)));
  }
  return text + "\n]\n";
}

std::vector<double> TrialResult::metric(std::string_view path) const {
  std::vector<double> values;
  for (const auto& result : results)
    if (const auto value = number_at(result, path)) values.push_back(*value);
  return values;
}

Analysis::Analysis(std::string name, fs::path directory, std::vector<Objective> objectives,
                   std::vector<TrialResult> trials, double elapsed_seconds)
    : name_(std::move(name)),
      directory_(std::move(directory)),
      objectives_(std::move(objectives)),
      trials_(std::move(trials)),
      elapsed_seconds_(elapsed_seconds) {}

const Objective& Analysis::objective() const {
  if (objectives_.empty())
    throw_error(ErrorCode::failed_precondition,
                "study {} has no metric to say what is best; give metric and mode to the run, or "
                "call get_best_trial. Metrics that were reported: {}",
                name_, reported_metrics(trials_));
  return objectives_.front();
}

const TrialResult& Analysis::best_trial() const {
  const Objective& by = objective();
  return get_best_trial(by.metric, mode_of(by.direction));
}

fs::path Analysis::best_checkpoint() const {
  const Objective& by = objective();
  return get_best_checkpoint(best_trial(), by.metric, mode_of(by.direction));
}

Table Analysis::best_result_df() const {
  const TrialResult& best = best_trial();
  Value::Dict row = flatten(best.last_result, '.');
  for (auto& [key, value] : flat_config(best.config, '.')) row.emplace("config." + key, value);
  return table_of({row});
}

Table Analysis::best_dataframe() const {
  std::vector<Value::Dict> rows;
  for (const auto& result : best_trial().results) rows.push_back(flatten(result));
  return table_of(rows);
}

const TrialResult& Analysis::get_best_trial(std::string_view metric, std::string_view mode,
                                            std::string_view scope, bool filter_nan_and_inf) const {
  std::vector<Curve> curves;
  for (const auto& trial : trials_)
    curves.push_back({TrialId{static_cast<std::uint64_t>(trial.number)}, trial.metric(metric)});
  const auto best = search::best_trial(curves, direction_of(mode), search::parse_scope(scope),
                                       filter_nan_and_inf);
  if (!best) throw_no_best(name_, metric, curves, reported_metrics(trials_));
  return trials_.at(static_cast<std::size_t>(*best));
}

const Config& Analysis::get_best_config(std::string_view metric, std::string_view mode,
                                        std::string_view scope) const {
  return get_best_trial(metric, mode, scope).config;
}

const fs::path& Analysis::get_best_logdir(std::string_view metric, std::string_view mode,
                                          std::string_view scope) const {
  return get_best_trial(metric, mode, scope).directory;
}

std::vector<std::pair<fs::path, double>> Analysis::get_trial_checkpoints_paths(
    const TrialResult& trial, std::string_view metric) const {
  std::vector<std::pair<fs::path, double>> found;
  for (const auto& checkpoint : trial.checkpoints)
    for (auto result = trial.results.rbegin(); result != trial.results.rend(); ++result) {
      if (result->at_path("training_iteration").as_integer() != checkpoint.iteration) continue;
      if (const auto value = number_at(*result, metric))
        found.emplace_back(checkpoint.path, *value);
      break;
    }
  return found;
}

fs::path Analysis::get_best_checkpoint(const TrialResult& trial, std::string_view metric,
                                       std::string_view mode) const {
  const bool smaller = direction_of(mode) == Direction::minimize;
  const auto found = get_trial_checkpoints_paths(trial, metric);
  const std::pair<fs::path, double>* best = nullptr;
  for (const auto& one : found)
    if (best == nullptr || is_better_metric(one.second, best->second, smaller)) best = &one;
  if (best != nullptr) return best->first;
  if (!trial.checkpoints.empty()) return trial.checkpoints.back().path;
  throw_error(ErrorCode::not_found, "trial {} of study {} has no checkpoint", trial.id, name_);
}

Table Analysis::dataframe(std::string_view metric, std::string_view mode) const {
  std::vector<Value::Dict> rows;
  for (const auto& trial : trials_) {
    const Value* chosen = trial.results.empty() ? nullptr : &trial.results.back();
    if (!metric.empty()) {
      const bool smaller = direction_of(mode) == Direction::minimize;
      std::optional<double> best;
      for (const auto& result : trial.results) {
        const auto value = number_at(result, metric);
        if (!value || std::isnan(*value)) continue;
        if (best && !is_better_metric(*value, *best, smaller)) continue;
        best = value;
        chosen = &result;
      }
    }
    Value::Dict row = chosen != nullptr ? flatten(*chosen) : Value::Dict{};
    for (auto& [key, value] : flat_config(trial.config)) row.emplace("config/" + key, value);
    row.insert_or_assign("trial_id", trial.id);
    row.insert_or_assign("status", std::string(to_string(trial.status)));
    row.insert_or_assign("logdir", trial.directory.string());
    rows.push_back(std::move(row));
  }
  return table_of(rows);
}

std::map<std::string, Value> Analysis::results() const {
  std::map<std::string, Value> all;
  for (const auto& trial : trials_) all.emplace(trial.id, trial.last_result);
  return all;
}

std::map<std::string, Table> Analysis::trial_dataframes() const {
  std::map<std::string, Table> all;
  for (const auto& trial : trials_) {
    std::vector<Value::Dict> rows;
    for (const auto& result : trial.results) rows.push_back(flatten(result));
    all.emplace(trial.directory.string(), table_of(rows));
  }
  return all;
}

std::map<std::string, Value> Analysis::get_all_configs(bool prefix) const {
  std::map<std::string, Value> all;
  for (const auto& trial : trials_) {
    Value::Dict config;
    for (const auto& [key, value] : trial.config.as_dict())
      config.emplace(prefix ? "config/" + key : key, value);
    all.emplace(trial.directory.string(), Value(std::move(config)));
  }
  return all;
}

std::vector<const TrialResult*> Analysis::pareto_front() const {
  static_cast<void>(objective());
  std::vector<std::vector<double>> vectors;
  std::vector<const TrialResult*> of;
  std::vector<Direction> directions;
  for (const auto& by : objectives_) directions.push_back(by.direction);
  for (const auto& trial : trials_) {
    std::vector<double> values;
    for (const auto& by : objectives_)
      if (const auto value = number_at(trial.last_result, by.metric)) values.push_back(*value);
    if (values.size() != objectives_.size()) continue;
    vectors.push_back(std::move(values));
    of.push_back(&trial);
  }
  std::vector<const TrialResult*> front;
  for (const std::size_t place : search::pareto_front(vectors, directions))
    front.push_back(of[place]);
  return front;
}

std::vector<const TrialResult*> Analysis::errors() const {
  std::vector<const TrialResult*> failed;
  for (const auto& trial : trials_)
    if (trial.status == TrialStatus::error) failed.push_back(&trial);
  return failed;
}

Value Analysis::stats() const {
  Value::Dict states;
  std::int64_t reports = 0, stopped = 0;
  double seconds = 0;
  for (const auto& trial : trials_) {
    auto& count = states.try_emplace(std::string(to_string(trial.status)), 0).first->second;
    count = count.as_integer() + 1;
    reports += static_cast<std::int64_t>(trial.results.size());
    stopped += trial.stopped ? 1 : 0;
    seconds += trial.seconds;
  }
  return Value{{"trials", trials_.size()}, {"states", Value(std::move(states))},
               {"reports", reports},       {"stopped_early", stopped},
               {"trial_seconds", seconds}, {"elapsed_seconds", elapsed_seconds_}};
}

}  // namespace kolo::tune

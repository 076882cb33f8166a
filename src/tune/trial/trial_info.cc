#include "tune/trial/trial_info.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "base/host.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {

void complete_result(Value& result, std::int64_t iteration, double seconds, double step) {
  auto& fields = result.as_dict();
  fields.insert_or_assign("training_iteration", iteration);
  fields.insert_or_assign("time_total_s", seconds);
  fields.try_emplace("time_this_iter_s", step);
}

bool is_own_field(std::string_view name) {
  constexpr std::string_view kFields[] = {"training_iteration",
                                          "time_total_s",
                                          "time_this_iter_s",
                                          "time_since_restore",
                                          "timestamp",
                                          "date",
                                          "iterations_since_restore",
                                          "trial_id",
                                          "experiment_id",
                                          "hostname",
                                          "pid",
                                          "done"};
  return std::find(std::begin(kFields), std::end(kFields), name) != std::end(kFields);
}

Value full_result(const StudyTrial& trial, const TrialNaming& naming) {
  static const std::string host = host_name();
  const auto& record = trial.record;
  Value result =
      trial.last_metrics.empty() ? Value(Value::Dict{}) : decode(trial.last_metrics, "a report");
  complete_result(result, record.iteration, trial.last_seconds, trial.last_step);
  auto& fields = result.as_dict();
  fields.insert_or_assign("time_since_restore", trial.last_seconds - trial.seconds_before);
  fields.insert_or_assign("iterations_since_restore", record.iteration);
  fields.try_emplace("done",
                     trial.ended() || trial.fate == Fate::done || trial.fate == Fate::pruned);
  fields.insert_or_assign("timestamp", static_cast<std::int64_t>(trial.last_time));
  fields.insert_or_assign("date", date_text(trial.last_time));
  fields.insert_or_assign("trial_id", trial.id);
  fields.insert_or_assign("experiment_id", naming.study);
  fields.insert_or_assign("hostname", host);
  fields.try_emplace("pid", std::int64_t{::getpid()});
  return result;
}

TrialInfo info_of(const StudyTrial& trial, const TrialNaming& naming) {
  TrialInfo info;
  const auto& record = trial.record;
  info.number = record.number;
  info.id = trial.id;
  info.name = naming.name_of(trial.id);
  info.status = record.status;
  info.config = config_of(trial);
  if (!trial.last_metrics.empty()) info.last_result = full_result(trial, naming);
  info.directory = record.directory;
  if (!trial.checkpoints.empty()) info.checkpoint = trial.checkpoints.back().path;
  info.iteration = record.iteration;
  info.failures = record.failures;
  info.seconds = trial.grant ? trial.seconds_at(std::chrono::steady_clock::now()) : record.seconds;
  info.error = record.error;
  info.why = record.why;
  info.stopped = trial.fate == Fate::pruned;
  return info;
}

Value config_of(const StudyTrial& trial) {
  return trial.config.is_nothing() ? decode(trial.record.config, "a configuration") : trial.config;
}

}  // namespace kolo::tune

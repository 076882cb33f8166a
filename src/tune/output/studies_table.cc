#include "tune/output/studies_table.h"

#include <fmt/format.h>

#include <cmath>
#include <optional>

#include "base/errors.h"
#include "base/log.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

/// "loss (min)"
std::string metric_text(const std::vector<Objective>& objectives) {
  std::string text;
  for (const auto& [metric, direction] : objectives)
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", metric,
                        direction == search::Direction::minimize ? "min" : "max");
  return text;
}

/// The best among the last values of all trials; nothing without one, or with several objectives.
Value best_value(store::StudyStore& store, const store::StudyRecord& study,
                 const std::vector<Objective>& objectives) {
  if (objectives.size() != 1) return {};
  std::optional<double> best;
  for (const auto& report : store.last_reports(study.id)) {
    const Value result = decode(report.metrics, "a report");
    const Value* value = result.find_path(objectives.front().metric);
    if (value == nullptr || !value->is_number() || !std::isfinite(value->as_number())) continue;
    const bool smaller = objectives.front().direction == search::Direction::minimize;
    const double number = value->as_number();
    if (!best || (smaller ? number < *best : number > *best)) best = number;
  }
  return best ? Value(*best) : Value();
}

}  // namespace

std::string_view state_of(store::StudyStore& store, const store::StudyRecord& study) {
  constexpr std::string_view kStates[] = {"interrupted", "finished", "stopped", "failed"};
  const bool under_way = store.holder(study.id, store.lease_date()).has_value();
  const auto status = static_cast<std::size_t>(study.status);
  if (status >= std::size(kStates)) return "?";  // a damaged database
  return under_way ? "running" : kStates[status];
}

Table empty_studies_table() {
  return {{"name", "state", "trials", "done", "failed", "metric", "best", "elapsed_s", "created"},
          {}};
}

std::vector<Value> studies_row(store::StudyStore& store, const store::StudyRecord& study,
                               const StudyCounts& counts) {
  return {study.name,
          std::string(state_of(store, study)),
          counts.trials,
          counts.done,
          counts.failed,
          metric_text(objectives_of_spec(study.spec)),
          counts.best,
          std::round(study.elapsed * 10) / 10,
          date_text(study.created)};
}

bool is_of_one_study(const Error& error) {
  return error.code() == ErrorCode::corruption || error.code() == ErrorCode::invalid_argument;
}

Table studies_table(store::StudyStore& store) {
  Table table = empty_studies_table();
  for (const auto& study : store.studies()) {
    try {
      const auto trials = store.trials(study.id);
      StudyCounts counts{.trials = trials.size()};
      for (const auto& trial : trials) {
        counts.done += trial.ended_seq ? 1 : 0;
        counts.failed += trial.status == store::TrialStatus::error ? 1 : 0;
      }
      counts.best = best_value(store, study, objectives_of_spec(study.spec));
      table.rows.push_back(studies_row(store, study, counts));
    } catch (const Error& error) {
      if (!is_of_one_study(error)) throw;
      log::warning("the study {} is left out, because it cannot be read: {}", study.name,
                   error.message());
    }
  }
  return table;
}

}  // namespace kolo::tune

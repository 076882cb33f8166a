#include "hps/results/trial_rows.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "tune/protocol/value_text.h"
#include "tune/trial/trial_info.h"

namespace kolo::hps {
namespace {

/// For one field of a table.
std::string one_line(std::string text) {
  constexpr std::size_t kMost = 300;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() > kMost) text.resize(kMost);
  return text;
}

/// What was reported besides the objectives; the dictionary "metadata" is what a run function says
/// in kolo's own way.
void add_metadata(ResultRow& row, const Value& result, const std::vector<std::string>& metrics) {
  if (!result.is_dict()) return;
  const auto& fields = result.as_dict();
  const auto said = fields.find("metadata");
  const bool has_more = said != fields.end() && said->second.is_dict();
  if (has_more)
    for (const auto& [name, value] : said->second.as_dict())
      row.metadata.emplace(metadata_name(name), value);
  for (const auto& [name, value] : fields)
    if (!(has_more && name == "metadata") && !tune::is_own_field(name) &&
        std::find(metrics.begin(), metrics.end(), name) == metrics.end())
      row.metadata.emplace(metadata_name(name), value);
}

}  // namespace

std::string failure_name(const std::string& error) {
  if (!error.starts_with("F_")) return "F_error";
  const auto end = std::find_if_not(error.begin(), error.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-' || c == '.';
  });
  return {error.begin(), end};
}

std::vector<EndedTrial> ended_trials(
    const std::vector<store::TrialRecord>& trials,
    const std::unordered_map<std::int64_t, std::string>& last_reports) {
  std::vector<const store::TrialRecord*> ended;
  for (const auto& trial : trials)
    if (trial.ended_seq) ended.push_back(&trial);
  std::sort(ended.begin(), ended.end(),
            [](const auto* a, const auto* b) { return *a->ended_seq < *b->ended_seq; });
  std::vector<EndedTrial> all;
  for (const auto* record : ended) {
    EndedTrial trial;
    trial.number = record->number;
    trial.config = tune::decode(record->config, "a configuration");
    if (const auto report = last_reports.find(record->number); report != last_reports.end())
      trial.last_result = tune::decode(report->second, "a report");
    if (record->status == store::TrialStatus::error)
      trial.error = record->error.empty() ? "F_error" : record->error;
    trial.started = record->started.value_or(record->created);
    trial.ended = record->ended.value_or(trial.started);
    all.push_back(std::move(trial));
  }
  return all;
}

ResultRow row_of(const EndedTrial& trial, const std::vector<std::string>& metrics, double began) {
  ResultRow row;
  row.parameters = flat_config(trial.config);
  row.submitted = std::max(0.0, trial.started - began);
  row.gathered = std::max(0.0, trial.ended - began);
  for (const auto& metric : metrics) {
    const Value* value = trial.last_result.find_path(metric);
    if (value != nullptr && value->is_number()) row.objectives.push_back(value->as_number());
  }
  add_metadata(row, trial.last_result, metrics);
  if (!trial.error.empty()) {
    row.failure = failure_name(trial.error);
    row.error = one_line(trial.error);
  } else if (row.objectives.size() != metrics.size()) {
    row.failure = "F_cancelled";  // the search was over before it was
    row.status = "CANCELLED";
  } else if (!std::all_of(row.objectives.begin(), row.objectives.end(),
                          [](double value) { return std::isfinite(value); })) {
    row.failure = "F_nan";
  }
  if (!row.failure.empty()) row.objectives.clear();
  return row;
}

}  // namespace kolo::hps

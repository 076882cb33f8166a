// One line for each thing that happened: a study is created, a trial is created, gets its
// parameters, intermediate values and attributes, and ends. Numbers of operations and states are
// Optuna's. A parameter has a distribution: that of the study's space where it is known, widened to
// what the trials have had, which a population may have moved beyond it.
#include "export_optuna.h"

#include <fmt/chrono.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "search/space/json_value.h"
#include "tune/output/study_importance.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/trial/shown_config.h"

namespace kolo::app {
namespace {

using search::Direction;
using tune::Value;

enum Operation { kCreateStudy = 0, kCreateTrial = 4, kParameter, kEnd, kIntermediate, kAttribute };
enum State { kComplete = 1, kPruned = 2, kFailed = 3 };

std::string date_of(double seconds) {
  const auto whole = std::floor(seconds);
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:06}", fmt::localtime(static_cast<std::time_t>(whole)),
                     static_cast<int>((seconds - whole) * 1e6));
}

/// What a categorical value is there: numbers, truths and texts are; the rest as text.
Json choice_of(const Value& value) {
  if (value.is_number() || value.is_string() || value.is_bool())
    return search::json_from_value(value);
  return value.is_nothing() ? Json() : Json(value.to_string());
}

/// One parameter with all its values.
class Distribution {
 public:
  /// `parameter` is null if the space is not known.
  Distribution(const search::Parameter* parameter, const std::vector<Value>& values) {
    const auto is_number = [](const Value& value) {
      return value.is_number() && std::isfinite(value.as_number());
    };
    const bool has_choices = parameter != nullptr && parameter->choices;
    if (!has_choices && std::all_of(values.begin(), values.end(), is_number))
      set_range(parameter, values);
    else
      set_choices(parameter, values);
  }

  [[nodiscard]] const std::string& text() const noexcept { return text_; }
  /// The number that stands for a value.
  [[nodiscard]] double internal(const Value& value) const {
    if (choices_.empty()) return value.as_number();
    const auto found = std::find(choices_.begin(), choices_.end(), choice_of(value));
    return static_cast<double>(found - choices_.begin());
  }

 private:
  void set_range(const search::Parameter* parameter, const std::vector<Value>& values) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    if (parameter != nullptr && std::isfinite(parameter->low) && std::isfinite(parameter->high)) {
      low = parameter->low;
      high = parameter->high;
    }
    bool is_whole = true;
    for (const Value& value : values) {
      low = std::min(low, value.as_number());
      high = std::max(high, value.as_number());
      is_whole = is_whole && value.is_integer();
    }
    if (parameter != nullptr)
      is_whole = is_whole && parameter->kind == search::Parameter::Kind::integer;
    const bool log = parameter != nullptr && parameter->log && low > 0;
    Json attributes{{"log", log}};
    if (is_whole)
      attributes.update({{"low", std::llround(low)}, {"high", std::llround(high)}, {"step", 1}});
    else
      attributes.update({{"low", low}, {"high", high}, {"step", nullptr}});
    text_ = json_text({{"name", is_whole ? "IntDistribution" : "FloatDistribution"},
                       {"attributes", std::move(attributes)}});
  }

  void set_choices(const search::Parameter* parameter, const std::vector<Value>& values) {
    const auto add = [this](const Value& value) {
      const Json choice = choice_of(value);
      if (std::find(choices_.begin(), choices_.end(), choice) == choices_.end())
        choices_.push_back(choice);
    };
    if (parameter != nullptr && parameter->choices)
      for (const Value& value : *parameter->choices) add(value);
    for (const Value& value : values) add(value);
    text_ =
        json_text({{"name", "CategoricalDistribution"}, {"attributes", {{"choices", choices_}}}});
  }

  std::string text_;
  std::vector<Json> choices_;
};

std::map<std::string, Distribution> distributions_of(const tune::StudySpec& spec,
                                                     const std::vector<tune::TrialResult>& trials) {
  std::map<std::string, std::vector<Value>> values;
  for (const auto& trial : trials)
    for (const auto& [path, value] : tune::flat_config(trial.config)) values[path].push_back(value);
  const auto parameters = tune::parameters_of(spec);
  std::map<std::string, Distribution> all;
  for (const auto& [path, seen] : values) {
    const auto found = std::find(parameters.paths.begin(), parameters.paths.end(), path);
    const auto place = static_cast<std::size_t>(found - parameters.paths.begin());
    all.emplace(
        path, Distribution(found == parameters.paths.end() ? nullptr
                                                           : &parameters.space->parameters()[place],
                           seen));
  }
  return all;
}

class Journal {
 public:
  void add(Operation operation, Json fields) {
    fields["op_code"] = static_cast<int>(operation);
    fields["worker_id"] = "kolo";
    text_ += json_text(fields) + "\n";
  }
  [[nodiscard]] std::string text() && { return std::move(text_); }

 private:
  std::string text_;
};

/// Its last values of all objectives; empty if one is missing.
std::vector<double> values_of(const tune::TrialResult& trial,
                              const std::vector<tune::Objective>& objectives) {
  std::vector<double> values;
  for (const auto& objective : objectives) {
    const auto all = trial.metric(objective.metric);
    if (all.empty() || !std::isfinite(all.back())) return {};
    values.push_back(all.back());
  }
  return values;
}

void add_trial(Journal& journal, std::int64_t number, const tune::TrialResult& trial,
               const store::TrialRecord& record, const std::vector<tune::Objective>& objectives,
               const std::map<std::string, Distribution>& distributions) {
  journal.add(kCreateTrial, {{"study_id", 0},
                             {"datetime_start", date_of(record.started.value_or(record.created))}});
  const Json id{{"trial_id", number}};
  const auto with_id = [&id](Json fields) {
    fields.update(id);
    return fields;
  };
  for (const auto& [path, value] : tune::flat_config(trial.config)) {
    const auto& distribution = distributions.at(path);
    journal.add(kParameter, with_id({{"param_name", path},
                                     {"param_value_internal", distribution.internal(value)},
                                     {"distribution", distribution.text()}}));
  }
  if (objectives.size() == 1)
    for (const auto& result : trial.results) {
      const Value* value = result.find_path(objectives.front().metric);
      if (value == nullptr || !value->is_number() || !std::isfinite(value->as_number())) continue;
      journal.add(kIntermediate,
                  with_id({{"step", result.at_path("training_iteration").as_integer()},
                           {"intermediate_value", value->as_number()}}));
    }
  for (const auto& [name, value] : tune::flatten(trial.last_result)) {
    const bool is_plain = (value.is_number() && std::isfinite(value.as_number())) ||
                          value.is_string() || value.is_bool();
    if (is_plain)
      journal.add(kAttribute, with_id({{"user_attr", {{name, search::json_from_value(value)}}}}));
  }
  if (!record.ended_seq) return;  // it runs there, too
  const auto values = values_of(trial, objectives);
  const bool failed = trial.status == tune::TrialStatus::error || values.empty();
  const State state = failed ? kFailed : trial.stopped ? kPruned : kComplete;
  journal.add(kEnd,
              with_id({{"state", static_cast<int>(state)},
                       {"values", failed ? Json() : Json(values)},
                       {"datetime_complete", date_of(record.ended.value_or(record.created))}}));
}

}  // namespace

std::string optuna_journal(store::StudyStore& store, const std::string& name) {
  const auto study = store.at(name);
  const auto spec = tune::StudySpec::from_json(study.spec);
  if (spec.objectives.empty())
    throw_error(ErrorCode::failed_precondition,
                "study {} has no objective, and Optuna knows no study without one", name);
  const auto read = tune::read_trials(store, study);
  Journal journal;
  Json directions = Json::array();
  for (const auto& objective : spec.objectives)
    directions.push_back(objective.direction == Direction::minimize ? 1 : 2);
  journal.add(kCreateStudy, {{"study_name", name}, {"directions", std::move(directions)}});
  const auto distributions = distributions_of(spec, read.trials);
  for (std::size_t i = 0; i < read.trials.size(); ++i)
    add_trial(journal, static_cast<std::int64_t>(i), read.trials[i], read.records[i],
              spec.objectives, distributions);
  return std::move(journal).text();
}

}  // namespace kolo::app

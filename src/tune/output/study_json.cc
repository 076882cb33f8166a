#include "tune/output/study_json.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <set>

#include "search/space/json_value.h"
#include "tune/output/study_importance.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"

namespace kolo::tune {
namespace {

constexpr std::size_t kMostMetrics = 12;

/// JSON has no such numbers; pages leave them out.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

/// Where a trial ran before it was resumed, from the detail of that event; "" = not known.
std::string slot_before(const std::string& detail) {
  if (const auto move = try_parse_json(detail); move && move->is_object())
    return move->value("slot_before", "");
  int now = 0, before = 0;  // as older studies have it
  if (std::sscanf(detail.c_str(), "on slot %d, before on slot %d", &now, &before) != 2) return {};
  return std::to_string(before);
}

/// Where a trial ran, from when to when: pauses cut it into pieces.
Json runs_of(const store::TrialRecord& record, const std::vector<store::EventRecord>& events,
             double until) {
  Json runs = Json::array();
  if (!record.started) return runs;
  bool running = true;
  double since = *record.started;
  for (const auto& event : events) {
    if (event.kind == "pause" || event.kind == "failure" || event.kind == "clone") {
      if (running) runs.push_back({since, event.time, record.place});
      running = false;
    } else if (event.kind == "resume") {
      // Only now is said where it ran until then.
      if (const auto slot = slot_before(event.detail); !slot.empty() && !runs.empty())
        runs.back()[2] = slot;
      running = true;
      since = event.time;
    }
  }
  if (running) runs.push_back({since, record.ended.value_or(until), record.place});
  return runs;
}

/// What ran: the command line of `kolo tune`, or the name that a C++ program has given.
std::string program_of(const StudySpec& spec) {
  if (spec.command.empty()) return spec.trainable;
  const Json command = try_parse_json(spec.command).value_or(Json());
  std::string words;
  if (command.is_object() && command.contains("program") && command["program"].is_array())
    for (const auto& word : command["program"])
      if (word.is_string()) words += (words.empty() ? "" : " ") + word.get<std::string>();
  return words.empty() ? spec.trainable : words;
}

}  // namespace

StudyData read_study_data(store::StudyStore& store, const std::string& name) {
  StudyData data{.study = store.at(name), .spec = {}, .analysis = read_study(store, name)};
  data.spec = StudySpec::from_json(data.study.spec);
  // A study under way may have more trials by now: what is shown is what the analysis has.
  const auto count = data.analysis.trials().size();
  data.records = store.trials(data.study.id);
  data.records.resize(count);
  data.events.resize(count);
  data.until = data.study.created;
  for (const auto& trial : data.records)
    data.until = std::max({data.until, trial.ended.value_or(0), trial.started.value_or(0)});
  for (auto& event : store.events(data.study.id)) {
    data.until = std::max(data.until, event.time);
    if (event.trial && static_cast<std::size_t>(*event.trial) < count)
      data.events[static_cast<std::size_t>(*event.trial)].push_back(std::move(event));
  }
  return data;
}

std::vector<std::string> metrics_of(const StudyData& study) {
  static const std::set<std::string> kAlways = {"training_iteration", "time_total_s",
                                                "time_this_iter_s", "timestamp"};
  std::vector<std::string> names;
  for (const auto& objective : study.spec.objectives) names.push_back(objective.metric);
  std::set<std::string> others;
  for (const auto& trial : study.analysis.trials())
    if (!trial.results.empty())
      for (const auto& [key, value] : flatten(trial.results.back()))
        if (value.is_number() && !kAlways.contains(key) &&
            std::find(names.begin(), names.end(), key) == names.end())
          others.insert(key);
  for (const auto& name : others)
    if (names.size() < kMostMetrics) names.push_back(name);
  return names;
}

Json study_json(const StudyData& study, const std::vector<std::string>& metrics) {
  Json data{{"name", study.study.name},           {"search", study.spec.search},
            {"scheduler", study.spec.scheduler},  {"elapsed", study.study.elapsed},
            {"created", study.study.created},     {"program", program_of(study.spec)},
            {"directory", study.study.directory}, {"parameters", Json::array()},
            {"objectives", Json::array()},        {"metrics", metrics}};
  const auto parameters = parameters_of(study.spec);
  for (std::size_t i = 0; i < parameters.paths.size(); ++i)
    data["parameters"].push_back(
        {{"path", parameters.paths[i]}, {"log", parameters.space->parameters()[i].log}});
  for (const auto& objective : study.spec.objectives)
    data["objectives"].push_back({{"metric", objective.metric},
                                  {"min", objective.direction == search::Direction::minimize}});
  return data;
}

Json trial_json(const StudyData& study, const TrialResult& trial,
                const std::vector<std::string>& metrics) {
  const auto number = static_cast<std::size_t>(trial.number);
  Json json{{"n", trial.number},
            {"id", trial.id},
            {"status", std::string(to_string(trial.status))},
            {"stopped", trial.stopped},
            {"seconds", trial.seconds},
            {"iterations", trial.iteration},
            {"why", trial.why},
            {"error", trial.error},
            {"config", Json::object()},
            {"metrics", Json::object()},
            {"values", Json::array()},
            {"files", Json::array()},
            {"runs", runs_of(study.records[number], study.events[number], study.until)}};
  for (const auto& [key, value] : flatten(trial.config)) {
    const bool odd = value.is_number() && !std::isfinite(value.as_number());
    json["config"][key] = odd ? Json() : search::json_from_value(value);
  }
  for (const auto& metric : metrics)
    if (const auto values = trial.metric(metric); !values.empty())
      json["metrics"][metric] = finite(values.back());
  for (const auto& objective : study.spec.objectives) {
    const auto values = trial.metric(objective.metric);
    json["values"].push_back(values.empty() ? Json() : finite(values.back()));
  }
  for (const char* file : {"stdout", "stderr", "error.txt", "progress.csv", "result.json"})
    if (const auto path = trial.directory / file; std::filesystem::exists(path))
      json["files"].push_back({file, path.string()});
  return json;
}

Json curve_json(const TrialResult& trial, const std::string& metric, std::size_t most_points) {
  Json curve = Json::array();
  const std::size_t every = 1 + trial.results.size() / most_points;
  for (std::size_t i = 0; i < trial.results.size(); ++i) {
    if (i % every != 0 && i + 1 != trial.results.size()) continue;
    const Value* value = trial.results[i].find_path(metric);
    if (value != nullptr && value->is_number())
      curve.push_back({trial.results[i].at_path("training_iteration").as_integer(),
                       finite(value->as_number())});
  }
  return curve;
}

Json importance_json(const StudyData& study) {
  Json shares = Json::array();
  for (const auto& share :
       importance_of(study.spec, parameters_of(study.spec), study.records, study.analysis))
    shares.push_back({share.path, finite(share.share)});
  return shares;
}

}  // namespace kolo::tune

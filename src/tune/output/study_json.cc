// Trials are read before events, and events of trials that were added in between are left out,
// since every list has one entry for each trial that was read. runs_json() goes through the events
// of a trial in order: a pause, a failure or a clone closes a piece, and a resume opens the next
// one. The slot of an earlier piece is known only from the resume after it, since the row of the
// trial has the newest slot alone. A piece that is open ends at the last time that anything was
// heard of the study. Curves are thinned by taking every n-th report, and the last one always.
#include "tune/output/study_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/errors.h"
#include "search/space/json_value.h"
#include "tune/output/study_importance.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/trial/shown_config.h"

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

/// Adds what happened to the trial at a place, and moves the end of what is known.
void add_events(StudyData& data, std::size_t place, std::vector<store::EventRecord> events) {
  const auto& record = data.records[place];
  data.until = std::max({data.until, record.ended.value_or(0), record.started.value_or(0)});
  for (auto& event : events) {
    data.until = std::max(data.until, event.time);
    data.events[place].push_back(std::move(event));
  }
}

/// A point of a curve; null where the metric is not there.
Json point_of(std::int64_t iteration, const Value* value) {
  if (value == nullptr || !value->is_number()) return {};
  return {iteration, finite(value->as_number())};
}

/// Of `count` points some, evenly, and the last.
template <class Point>
Json curve(std::size_t count, std::size_t most_points, Point point) {
  Json points = Json::array();
  const std::size_t every = 1 + count / most_points;
  for (std::size_t i = 0; i < count; ++i)
    if (i % every == 0 || i + 1 == count)
      if (Json one = point(i); !one.is_null()) points.push_back(std::move(one));
  return points;
}

}  // namespace

StudyData read_study_data(store::StudyStore& store, const std::string& name) {
  StudyData data{.study = store.at(name), .spec = {}};
  data.spec = StudySpec::from_json(data.study.spec);
  auto read = read_trials(store, data.study);
  data.trials = std::move(read.trials);
  data.records = std::move(read.records);
  // A study under way may have more trials by now: what is shown is what was read.
  const auto count = data.trials.size();
  data.events.resize(count);
  std::vector<std::vector<store::EventRecord>> events(count);
  for (auto& event : store.events(data.study.id)) {
    data.until = std::max(data.until, event.time);
    if (event.trial && static_cast<std::size_t>(*event.trial) < count)
      events[static_cast<std::size_t>(*event.trial)].push_back(std::move(event));
  }
  for (std::size_t place = 0; place < count; ++place)
    add_events(data, place, std::move(events[place]));
  data.until = std::max(data.until, data.study.created);
  return data;
}

StudyData read_trial_data(store::StudyStore& store, const std::string& name, std::int64_t number) {
  StudyData data{.study = store.at(name), .spec = {}};
  data.spec = StudySpec::from_json(data.study.spec);
  auto read = read_trials(store, data.study, std::array{number});
  data.trials = std::move(read.trials);
  data.records = std::move(read.records);
  if (data.trials.empty())
    throw_error(ErrorCode::not_found, "study {} has no trial {}; it has {} trials", name, number,
                store.trial_count(data.study.id));
  for (const auto& checkpoint : store.checkpoints_of(data.study.id, number))
    data.trials.front().checkpoints.push_back({checkpoint.path, checkpoint.iteration});
  data.events.resize(1);
  data.until = data.study.created;
  add_events(data, 0, store.events_of(data.study.id, number));
  return data;
}

std::vector<std::string> metrics_shown(const std::vector<Objective>& objectives,
                                       const std::set<std::string>& numbers) {
  static const std::set<std::string> kAlways = {"training_iteration", "time_total_s",
                                                "time_this_iter_s", "timestamp"};
  std::vector<std::string> names;
  for (const auto& objective : objectives) names.push_back(objective.metric);
  const std::size_t fixed = names.size();
  for (const auto& name : numbers)
    if (names.size() < kMostMetrics && !kAlways.contains(name) &&
        std::find(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(fixed), name) ==
            names.begin() + static_cast<std::ptrdiff_t>(fixed))
      names.push_back(name);
  return names;
}

std::vector<std::string> metrics_of(const StudyData& study) {
  std::set<std::string> numbers;
  for (const auto& trial : study.trials)
    if (!trial.results.empty())
      for (const auto& [key, value] : flatten(trial.results.back()))
        if (value.is_number()) numbers.insert(key);
  return metrics_shown(study.spec.objectives, numbers);
}

TrialFacts facts_of(const StudyData& study, std::size_t place,
                    const std::vector<std::string>& metrics) {
  const auto& trial = study.trials[place];
  TrialFacts facts{.number = trial.number,
                   .id = trial.id,
                   .status = trial.status,
                   .stopped = trial.stopped,
                   .seconds = trial.seconds,
                   .iterations = trial.iteration,
                   .why = trial.why,
                   .error = trial.error,
                   .config = flat_config(trial.config),
                   .metrics = {},
                   .runs = runs_json(study.records[place], study.events[place], study.until)};
  for (const auto& metric : metrics)
    if (const auto values = trial.metric(metric); !values.empty())
      facts.metrics.emplace(metric, values.back());
  return facts;
}

Json study_json(const store::StudyRecord& study, const StudySpec& spec,
                const std::vector<std::string>& metrics) {
  Json data{{"name", study.name},           {"search", spec.search},
            {"scheduler", spec.scheduler},  {"elapsed", study.elapsed},
            {"created", study.created},     {"program", program_of(spec)},
            {"directory", study.directory}, {"parameters", Json::array()},
            {"objectives", Json::array()},  {"metrics", metrics}};
  const auto parameters = parameters_of(spec);
  for (std::size_t i = 0; i < parameters.paths.size(); ++i)
    data["parameters"].push_back({{"path", shown_path(parameters.paths[i])},
                                  {"log", parameters.space->parameters()[i].log}});
  for (const auto& objective : spec.objectives)
    data["objectives"].push_back({{"metric", objective.metric},
                                  {"min", objective.direction == search::Direction::minimize}});
  return data;
}

Json trial_json(const TrialFacts& facts, const StudySpec& spec,
                const std::vector<std::string>& metrics) {
  Json json{{"n", facts.number},
            {"id", facts.id},
            {"status", std::string(to_string(facts.status))},
            {"stopped", facts.stopped},
            {"seconds", facts.seconds},
            {"iterations", facts.iterations},
            {"why", facts.why},
            {"error", facts.error},
            {"config", Json::object()},
            {"metrics", Json::object()},
            {"values", Json::array()},
            {"runs", facts.runs}};
  for (const auto& [key, value] : facts.config) {
    const bool odd = value.is_number() && !std::isfinite(value.as_number());
    json["config"][key] = odd ? Json() : search::json_from_value(value);
  }
  const auto last = [&](const std::string& metric) -> std::optional<Json> {
    const auto found = facts.metrics.find(metric);
    if (found == facts.metrics.end() || !found->second.is_number()) return std::nullopt;
    return finite(found->second.as_number());
  };
  for (const auto& metric : metrics)
    if (auto value = last(metric)) json["metrics"][metric] = *std::move(value);
  for (const auto& objective : spec.objectives)
    json["values"].push_back(last(objective.metric).value_or(Json()));
  return json;
}

Json files_json(const TrialResult& trial) {
  Json files = Json::array();
  std::error_code unknown;  // a trial may leave a link that leads to itself
  for (const char* file : {"stdout", "stderr", "error.txt", "progress.csv", "result.json"})
    if (const auto path = trial.directory / file; std::filesystem::exists(path, unknown))
      files.push_back({file, path.string()});
  return files;
}

Json runs_json(const store::TrialRecord& record, std::span<const store::EventRecord> events,
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

Json curve_json(const TrialResult& trial, const std::string& metric, std::size_t most_points) {
  return curve(trial.results.size(), most_points, [&](std::size_t i) {
    const Value& result = trial.results[i];
    return point_of(result.at_path("training_iteration").as_integer(), result.find_path(metric));
  });
}

Json curve_json(std::span<const store::ReportRecord> reports, const std::string& metric,
                std::size_t most_points) {
  return curve(reports.size(), most_points, [&](std::size_t i) {
    const Value result = decode(reports[i].metrics, "a report");
    return point_of(reports[i].iteration, result.find_path(metric));
  });
}

Json importance_json(const StudySpec& spec, std::span<const store::TrialRecord> records,
                     std::span<const TrialResult> trials) {
  Json shares = Json::array();
  for (const auto& share : importance_of(spec, parameters_of(spec), records, trials))
    shares.push_back({share.path, finite(share.share)});
  return shares;
}

}  // namespace kolo::tune

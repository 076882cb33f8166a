#include "tune/output/report_html.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "base/errors.h"
#include "base/json.h"
#include "base/markup.h"
#include "search/space/json_value.h"
#include "tune/output/report_page.h"
#include "tune/output/study_importance.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_reader.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {
namespace {

/// So much of a study is on its page.
constexpr std::size_t kMostMetrics = 12;
constexpr std::size_t kMostPoints = 200;

/// JSON has no such numbers; the page leaves them out.
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
    if (event.trial != record.number) continue;
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

/// Every metric that is a number in some report; the objectives come first.
std::vector<std::string> metrics_of(const Analysis& analysis,
                                    const std::vector<Objective>& objectives) {
  static const std::set<std::string> kAlways = {"training_iteration", "time_total_s",
                                                "time_this_iter_s", "timestamp"};
  std::vector<std::string> names;
  for (const auto& objective : objectives) names.push_back(objective.metric);
  std::set<std::string> others;
  for (const auto& trial : analysis.trials())
    if (!trial.results.empty())
      for (const auto& [key, value] : flatten(trial.results.back()))
        if (value.is_number() && !kAlways.contains(key) &&
            std::find(names.begin(), names.end(), key) == names.end())
          others.insert(key);
  for (const auto& name : others)
    if (names.size() < kMostMetrics) names.push_back(name);
  return names;
}

/// The values of one metric over the reports; of many reports, some and the last.
Json curve_of(const TrialResult& trial, const std::string& metric) {
  Json curve = Json::array();
  const std::size_t every = 1 + trial.results.size() / kMostPoints;
  for (std::size_t i = 0; i < trial.results.size(); ++i) {
    if (i % every != 0 && i + 1 != trial.results.size()) continue;
    const Value* value = trial.results[i].find_path(metric);
    if (value != nullptr && value->is_number())
      curve.push_back({trial.results[i].at_path("training_iteration").as_integer(),
                       finite(value->as_number())});
  }
  return curve;
}

Json trial_json(const TrialResult& trial, const std::vector<Objective>& objectives,
                const std::vector<std::string>& metrics) {
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
            {"curves", Json::object()},
            {"values", Json::array()},
            {"files", Json::array()}};
  for (const auto& [key, value] : flatten(trial.config)) {
    const bool odd = value.is_number() && !std::isfinite(value.as_number());
    json["config"][key] = odd ? Json() : search::json_from_value(value);
  }
  for (const auto& metric : metrics) {
    const auto values = trial.metric(metric);
    if (values.empty()) continue;
    json["metrics"][metric] = finite(values.back());
    json["curves"][metric] = curve_of(trial, metric);
  }
  for (const auto& objective : objectives) {
    const auto values = trial.metric(objective.metric);
    json["values"].push_back(values.empty() ? Json() : finite(values.back()));
  }
  for (const char* file : {"stdout", "stderr", "error.txt", "progress.csv", "result.json"})
    if (const auto path = trial.directory / file; std::filesystem::exists(path))
      json["files"].push_back({file, path.string()});
  return json;
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

/// Inside a script element "</" would end it, and "<!--" changes how it is read. The only "<" of
/// JSON are in strings.
std::string for_script(std::string_view json) {
  std::string text;
  for (const char c : json)
    if (c == '<')
      text += "\\u003c";
    else
      text += c;
  return text;
}

/// The page with its marks replaced, in one pass: what is put in may read like a mark itself.
std::string filled(std::string_view page, const std::map<std::string_view, std::string>& texts) {
  std::string out;
  for (std::size_t at = 0;;) {
    const auto open = page.find("{{", at);
    out += page.substr(at, open - at);
    if (open == std::string_view::npos) return out;
    const auto mark = page.substr(open, page.find("}}", open) + 2 - open);
    const auto text = texts.find(mark);
    out += text != texts.end() ? text->second : mark;
    at = open + mark.size();
  }
}

}  // namespace

std::string report_html(store::StudyStore& store, const std::string& name) {
  const auto study = store.at(name);
  const auto spec = StudySpec::from_json(study.spec);
  const Analysis analysis = read_study(store, name);
  const auto records = store.trials(study.id);
  const auto events = store.events(study.id);
  double until = study.created;
  for (const auto& record : records)
    until = std::max({until, record.ended.value_or(0), record.started.value_or(0)});
  for (const auto& event : events) until = std::max(until, event.time);

  Json data{{"name", name},
            {"search", spec.search},
            {"scheduler", spec.scheduler},
            {"elapsed", study.elapsed},
            {"created", study.created},
            {"program", program_of(spec)},
            {"directory", study.directory},
            {"parameters", Json::array()},
            {"importance", Json::array()}};
  const auto parameters = parameters_of(spec);
  for (std::size_t i = 0; i < parameters.paths.size(); ++i)
    data["parameters"].push_back(
        {{"path", parameters.paths[i]}, {"log", parameters.space->parameters()[i].log}});
  for (const auto& share : importance_of(spec, parameters, records, analysis))
    data["importance"].push_back({share.path, finite(share.share)});
  data["objectives"] = Json::array();
  for (const auto& objective : spec.objectives)
    data["objectives"].push_back({{"metric", objective.metric},
                                  {"min", objective.direction == search::Direction::minimize}});
  const auto metrics = metrics_of(analysis, spec.objectives);
  data["metrics"] = metrics;
  data["trials"] = Json::array();
  for (const auto& trial : analysis.trials()) {
    Json json = trial_json(trial, spec.objectives, metrics);
    json["runs"] = runs_of(records[static_cast<std::size_t>(trial.number)], events, until);
    data["trials"].push_back(std::move(json));
  }
  return filled(report_page(),
                {{"{{title}}", markup_escaped(name)}, {"{{data}}", for_script(json_text(data))}});
}

}  // namespace kolo::tune

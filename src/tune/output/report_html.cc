#include "tune/output/report_html.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "base/errors.h"
#include "base/json.h"
#include "base/markup.h"
#include "search/space/json_value.h"
#include "tune/output/report_page.h"
#include "tune/protocol/value_text.h"
#include "tune/study/slot_moves.h"
#include "tune/study/study_reader.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {
namespace {

/// JSON has no such numbers; the page leaves them out.
Json finite(double value) { return std::isfinite(value) ? Json(value) : Json(); }

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
      if (const auto move = slot_move_in(event.detail); move && !runs.empty())
        runs.back()[2] = std::to_string(move->from);
      running = true;
      since = event.time;
    }
  }
  if (running) runs.push_back({since, record.ended.value_or(until), record.place});
  return runs;
}

Json importance_of(const StudySpec& spec, const std::vector<store::TrialRecord>& records,
                   const Analysis& analysis) {
  Json shares = Json::array();
  if (spec.space.empty() || spec.objectives.empty()) return shares;
  const auto space = search::Space::from_json(spec.space);
  const bool population = spec.scheduler == "pbt" || spec.scheduler == "pb2";
  std::vector<search::Point> points;
  std::vector<double> values, budgets;
  for (const auto& record : records) {
    const auto& trial = analysis.trials()[static_cast<std::size_t>(record.number)];
    // The configuration of a member of a population is that of its last results alone.
    const auto point = population ? space->partial_point(trial.config) : decode_point(record.point);
    for (std::size_t i = 0; i < trial.results.size(); ++i) {
      // Results of one trial are much alike: those of the 1st, 2nd, 4th … and last report do.
      const bool last = i + 1 == trial.results.size();
      if (!last && (population || !std::has_single_bit(i + 1))) continue;
      const Value* value = trial.results[i].find_path(spec.objectives.front().metric);
      if (value == nullptr || !value->is_number()) continue;
      points.push_back(point);
      values.push_back(value->as_number());
      budgets.push_back(trial.results[i].at_path("training_iteration").as_number());
    }
  }
  try {
    for (const auto& share : search::parameter_importance(*space, points, values, budgets))
      shares.push_back({share.path, finite(share.share)});
  } catch (const Error&) {
    // Too few trials to say anything.
  }
  return shares;
}

Json trial_json(const TrialResult& trial, const std::vector<Objective>& objectives) {
  Json json{{"n", trial.number},
            {"id", trial.id},
            {"status", std::string(to_string(trial.status))},
            {"stopped", trial.stopped},
            {"seconds", trial.seconds},
            {"iterations", trial.iteration},
            {"why", trial.why},
            {"error", trial.error}};
  for (const auto& [key, value] : flatten(trial.config)) {
    const bool odd = value.is_number() && !std::isfinite(value.as_number());
    json["config"][key] = odd ? Json() : search::json_from_value(value);
  }
  json["curve"] = Json::array();
  json["values"] = Json::array();
  for (const auto& objective : objectives) {
    const auto values = trial.metric(objective.metric);
    json["values"].push_back(values.empty() ? Json() : finite(values.back()));
  }
  if (!objectives.empty())
    for (const auto& result : trial.results) {
      const Value* value = result.find_path(objectives.front().metric);
      if (value != nullptr && value->is_number())
        json["curve"].push_back(
            {result.at_path("training_iteration").as_integer(), finite(value->as_number())});
    }
  return json;
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
            {"importance", importance_of(spec, records, analysis)}};
  data["objectives"] = Json::array();
  for (const auto& objective : spec.objectives)
    data["objectives"].push_back({{"metric", objective.metric},
                                  {"min", objective.direction == search::Direction::minimize}});
  data["trials"] = Json::array();
  for (const auto& trial : analysis.trials()) {
    Json json = trial_json(trial, spec.objectives);
    json["runs"] = runs_of(records[static_cast<std::size_t>(trial.number)], events, until);
    data["trials"].push_back(std::move(json));
  }
  return filled(report_page(),
                {{"{{title}}", markup_escaped(name)}, {"{{data}}", for_script(json_text(data))}});
}

}  // namespace kolo::tune

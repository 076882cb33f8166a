// The page is bounded, whatever the study is: kMostBytes. Of trials that are drawn everything is on
// the page: of all of them if they are few, else of the best and of some others. A table of all
// trials, column by column, gets the room that is left, and if it is too large, too, it has as many
// of them as fit. The page says what it does not have.
#include "tune/output/report_html.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "base/json.h"
#include "base/markup.h"
#include "base/text_table.h"
#include "tune/output/chosen_trials.h"
#include "tune/output/packed_column.h"
#include "tune/output/report_page.h"
#include "tune/output/study_json.h"

namespace kolo::tune {
namespace {

constexpr std::size_t kMostBytes = 4'900'000;
/// Of them, for trials that are drawn.
constexpr std::size_t kDrawnBytes = 1'500'000;
constexpr std::size_t kMostDrawn = 1000;
constexpr std::size_t kFewestDrawn = 20;
/// More curves than that are not drawn in one plot.
constexpr std::size_t kMostCurves = 300;
constexpr std::size_t kMostPoints = 200;
constexpr std::size_t kFewestPoints = 10;
/// In all curves: a point takes about twenty characters.
constexpr std::size_t kMostPointsTogether = 60'000;
/// Of what all errors say together, which may be whole logs.
constexpr std::size_t kErrorLetters = 400'000;

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

/// What is on the page of each trial, and how good the trial was.
struct Trials {
  const StudyData& study;
  std::vector<std::string> metrics;
  std::vector<Json> all{};
  std::vector<double> badness{};  ///< NaN: no value
};

Trials trials_of(const StudyData& study) {
  Trials trials{.study = study, .metrics = metrics_of(study)};
  const bool minimize = study.spec.objectives.empty() ||
                        study.spec.objectives.front().direction == search::Direction::minimize;
  for (std::size_t place = 0; place < study.trials.size(); ++place) {
    Json trial = trial_json(facts_of(study, place, trials.metrics), study.spec, trials.metrics);
    const auto& values = trial["values"];
    const double value = values.empty() || values[0].is_null()
                             ? std::numeric_limits<double>::quiet_NaN()
                             : values[0].get<double>();
    trials.badness.push_back(minimize ? value : -value);
    trials.all.push_back(std::move(trial));
  }
  return trials;
}

/// Everything about these trials; curves of as many of them as one plot shows.
Json drawn_trials(const Trials& trials, std::size_t most) {
  const auto numbers = chosen_trials(trials.badness, most);
  const auto with_curves = chosen_trials(trials.badness, std::min(most, kMostCurves));
  const std::size_t curves = std::max<std::size_t>(1, with_curves.size() * trials.metrics.size());
  const auto points = std::clamp(kMostPointsTogether / curves, kFewestPoints, kMostPoints);
  Json drawn = Json::array();
  for (const std::int64_t number : numbers) {
    const auto place = static_cast<std::size_t>(number);
    Json trial = trials.all[place];
    trial["error"] = shortened(trial["error"], kErrorLetters / numbers.size());
    trial["files"] = files_json(trials.study.trials[place]);
    trial["curves"] = Json::object();
    if (std::binary_search(with_curves.begin(), with_curves.end(), number))
      for (const auto& metric : trials.metrics)
        if (trial["metrics"].contains(metric))
          trial["curves"][metric] = curve_json(trials.study.trials[place], metric, points);
    drawn.push_back(std::move(trial));
  }
  return drawn;
}

/// Columns by name, of these trials; `part` is the member of a trial that has them.
Json packed_columns(const Trials& trials, std::span<const std::int64_t> numbers,
                    const std::set<std::string>& names, const char* part) {
  Json columns = Json::object();
  std::vector<Json> values;
  for (const auto& name : names) {
    values.clear();
    for (const std::int64_t number : numbers) {
      const Json& trial = trials.all[static_cast<std::size_t>(number)];
      const Json& fields = part == nullptr ? trial : trial[part];
      const auto field = fields.find(name);
      values.push_back(field == fields.end() ? Json() : *field);
    }
    columns[name] = packed_column(values);
  }
  return columns;
}

/// At most so many trials, in columns: what the table of the page shows.
Json table_of(const Trials& trials, std::size_t most) {
  std::set<std::string> parameters;
  for (const Json& trial : trials.all)
    for (const auto& [name, value] : trial["config"].items()) parameters.insert(name);
  const auto numbers = chosen_trials(trials.badness, most);
  return {{"count", numbers.size()},
          {"fields", packed_columns(trials, numbers,
                                    {"n", "status", "stopped", "iterations", "seconds"}, nullptr)},
          {"config", packed_columns(trials, numbers, parameters, "config")},
          {"metrics", packed_columns(trials, numbers,
                                     {trials.metrics.begin(), trials.metrics.end()}, "metrics")}};
}

/// As many trials in columns as there is room for.
Json table_within(const Trials& trials, std::size_t bytes) {
  for (std::size_t most = trials.all.size();;) {
    Json table = table_of(trials, most);
    const auto size = json_text(table).size();
    if (size <= bytes || most == 0) return table;
    // A little less than in proportion: names take room, too.
    most = std::min(most - 1, most * bytes / size * 95 / 100);
  }
}

}  // namespace

std::string report_html(store::StudyStore& store, const std::string& name) {
  const StudyData study = read_study_data(store, name);
  const Trials trials = trials_of(study);
  Json data = study_json(study.study, study.spec, trials.metrics);
  data["importance"] = importance_json(study.spec, study.records, study.trials);
  data["total"] = trials.all.size();
  std::size_t early = 0;
  std::map<std::string, std::size_t> counts;
  for (const auto& trial : study.trials) {
    ++counts[std::string(to_string(trial.status))];
    early += trial.stopped ? 1 : 0;
  }
  data["counts"] = counts;
  data["early"] = early;
  for (std::size_t most = kMostDrawn; most >= kFewestDrawn; most /= 2) {
    data["trials"] = drawn_trials(trials, most);
    if (json_text(data["trials"]).size() <= kDrawnBytes) break;
  }
  if (data["trials"].size() < trials.all.size()) {
    const auto used = report_page().size() + json_text(data).size();
    data["table"] = table_within(trials, kMostBytes - std::min(kMostBytes, used));
  }
  return filled(report_page(),
                {{"{{title}}", markup_escaped(name)}, {"{{data}}", for_script(json_text(data))}});
}

}  // namespace kolo::tune

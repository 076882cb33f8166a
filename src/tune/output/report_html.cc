#include "tune/output/report_html.h"

#include <map>

#include "base/json.h"
#include "base/markup.h"
#include "tune/output/report_page.h"
#include "tune/output/study_json.h"

namespace kolo::tune {
namespace {

/// So many points of each curve are on the page.
constexpr std::size_t kMostPoints = 200;

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
  const StudyData study = read_study_data(store, name);
  const auto metrics = metrics_of(study);
  Json data = study_json(study.study, study.spec, metrics);
  data["importance"] = importance_json(study.spec, study.records, study.trials);
  data["trials"] = Json::array();
  for (std::size_t place = 0; place < study.trials.size(); ++place) {
    const auto& trial = study.trials[place];
    Json json = trial_json(facts_of(study, place, metrics), study.spec, metrics);
    json["files"] = files_json(trial);
    json["curves"] = Json::object();
    for (const auto& metric : metrics)
      if (json["metrics"].contains(metric))
        json["curves"][metric] = curve_json(trial, metric, kMostPoints);
    data["trials"].push_back(std::move(json));
  }
  return filled(report_page(),
                {{"{{title}}", markup_escaped(name)}, {"{{data}}", for_script(json_text(data))}});
}

}  // namespace kolo::tune

#include "tune/output/study_importance.h"

#include <algorithm>
#include <bit>

#include "base/errors.h"
#include "base/json.h"
#include "tune/protocol/value_text.h"
#include "tune/trial/shown_config.h"

namespace kolo::tune {
namespace {

/// An outline describes a domain as messages do, "loguniform(0.0001, 0.1)"; documents have it as
/// {"loguniform": [0.0001, 0.1]}.
Json document_of(const std::string& domain) {
  const auto open = domain.find('(');
  Json arguments = Json::array();
  std::string word;
  for (const char c : domain.substr(open + 1)) {
    if (c != ',' && c != ')') {
      if (c != ' ') word += c;
      continue;
    }
    const Json number = try_parse_json(word).value_or(Json());
    if (!word.empty()) arguments.push_back(number.is_number() ? number : Json(word));
    word.clear();
  }
  return {{domain.substr(0, open), std::move(arguments)}};
}

constexpr const char* kOutline = "the outline of a space";
/// The numbers come from a database, and as many are laid out here, of all parameters together.
constexpr std::size_t kMostChoices = 10'000'000;

Json document_of(const Json& parameter, std::size_t& laid_out) {
  const auto domain = json_field<std::string>(parameter, "domain", kOutline);
  Json choices = json_field<Json>(parameter, "choices", kOutline);
  if (choices.is_null()) return document_of(domain);
  const bool ordered = domain.starts_with("ordinal");
  if (!choices.is_array()) {  // of very many choices only the number is kept
    const auto count = json_field<std::size_t>(choices, "count", kOutline);
    if (count > kMostChoices - laid_out)
      throw_error(ErrorCode::corruption, "{} has {} choices; {} at most", kOutline,
                  count + laid_out, kMostChoices);
    laid_out += count;
    choices = Json::array();
    for (std::size_t i = 0; i < count; ++i) choices.push_back(i);
  }
  return {{ordered ? "ordinal" : "choice", std::move(choices)}};
}

}  // namespace

StudyParameters parameters_of(const StudySpec& spec) {
  StudyParameters parameters;
  if (!spec.space.empty()) {
    parameters.space = search::Space::from_json(spec.space);
    for (const auto& parameter : parameters.space->parameters())
      parameters.paths.push_back(parameter.path);
  } else if (!spec.outline.empty()) {
    // Names that keep the order of the points, whatever the paths are.
    const Json outline = parse_json(spec.outline, kOutline);
    Json document = Json::object();
    std::size_t laid_out = 0;
    for (const Json& parameter : json_field<Json>(outline, "parameters", kOutline)) {
      document[fmt::format("p{:06}", parameters.paths.size())] = document_of(parameter, laid_out);
      parameters.paths.push_back(json_field<std::string>(parameter, "path", kOutline));
    }
    parameters.space = search::Space::from_json(json_text(document));
  }
  return parameters;
}

namespace {

/// Of parameters that are shown, under the names they are shown by. A choice and what is searched
/// inside its values are one.
std::vector<search::Importance> shown(const std::vector<search::Importance>& shares) {
  std::vector<search::Importance> all;
  for (const auto& share : shares) {
    const std::string path = shown_path(share.path);
    if (path.empty()) continue;
    const auto same =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.path == path; });
    if (same == all.end())
      all.push_back({path, share.share});
    else
      same->share += share.share;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& left, const auto& right) { return left.share > right.share; });
  return all;
}

}  // namespace

std::vector<search::Importance> importance_of(const StudySpec& spec,
                                              const StudyParameters& parameters,
                                              std::span<const store::TrialRecord> records,
                                              std::span<const TrialResult> trials) {
  if (!parameters.space || spec.objectives.empty()) return {};
  const auto& space = *parameters.space;
  const bool population = spec.scheduler == "pbt" || spec.scheduler == "pb2";
  std::vector<search::Point> points;
  std::vector<double> values, budgets;
  for (std::size_t place = 0; place < trials.size(); ++place) {
    const auto& trial = trials[place];
    auto point = decode_point(records[place].point);
    if (point.size() != space.size()) continue;  // of another space
    for (std::size_t i = 0; i < point.size(); ++i) point[i] = space.nearest(i, point[i]);
    // The configuration of a member of a population is that of its last results alone.
    for (std::size_t i = 0; population && i < point.size(); ++i)
      if (const Value* value = trial.config.find_path(parameters.paths[i]))
        point[i] = space.entry_of(i, *value);
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
    auto shares = search::parameter_importance(space, points, values, budgets);
    for (auto& share : shares) share.path = parameters.paths[space.index_of(share.path)];
    return shown(shares);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::invalid_argument) throw;
    return {};
  }
}

}  // namespace kolo::tune

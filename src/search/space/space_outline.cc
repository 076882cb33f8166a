#include "search/space/space_outline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/errors.h"
#include "search/space/json_value.h"
#include "search/space/path.h"
#include "search/space/space_body.h"

namespace kolo::search {
namespace {

/// Longer lists of choices are compared by their hash, so that an outline stays short.
constexpr std::size_t kListedChoices = 1000;
constexpr std::size_t kShownChoices = 8;

void add_leaves(const Node& node, Json& outline) {
  if (node.kind == Node::Kind::constant)
    outline["constants"][node.path] = json_from_value(node.constant);
  if (node.kind == Node::Kind::function) outline["functions"][node.path] = node.text;
  for (const Node& child : node.children) add_leaves(child, outline);
}

std::uint64_t hash_of(const std::vector<Value>& values) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const Value& value : values)
    for (const char c : value.to_string() + '\n')
      hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

Json choices_of(const Parameter& parameter) {
  if (!parameter.choices) return nullptr;
  if (parameter.choices->size() > kListedChoices)
    return {{"count", parameter.choices->size()}, {"hash", hash_of(*parameter.choices)}};
  Json values = Json::array();
  for (const Value& value : *parameter.choices) values.push_back(json_from_value(value));
  return values;
}

std::string text_of(const Json& choices) {
  if (!choices.is_array()) return fmt::format("{} values", choices.value("count", 0));
  std::string text = "[";
  for (std::size_t i = 0; i < choices.size(); ++i) {
    if (i == kShownChoices) return text + fmt::format(", … {} values]", choices.size());
    text += (i > 0 ? ", " : "") + json_text(choices[i]);
  }
  return text + "]";
}

}  // namespace

std::string Space::outline() const {
  Json outline{{"parameters", Json::array()},
               {"constants", Json::object()},
               {"functions", Json::object()},
               {"conditions", Json::array()},
               {"forbidden", Json::array()}};
  for (const Parameter& parameter : parameters())
    outline["parameters"].push_back({{"path", parameter.path},
                                     {"domain", parameter.domain},
                                     {"choices", choices_of(parameter)}});
  add_leaves(body_->root, outline);
  for (const auto& condition : body_->conditions)
    outline["conditions"].push_back(Json::array({condition.path, condition.text}));
  for (const auto& forbidden : body_->forbidden) outline["forbidden"].push_back(forbidden.text);
  return json_text(outline);
}

SpaceChange::SpaceChange(const Json& before, const Space& now) : now_(now) {
  const Json outline = parse_json(now.outline(), "the space");
  compare_parameters(before.at("parameters"));
  compare_leaves(before.at("constants"), outline.at("constants"), "constant");
  compare_leaves(before.at("functions"), outline.at("functions"), "function");
  for (const char* rules : {"conditions", "forbidden"})
    if (before.at(rules) != outline.at(rules))
      changes_.push_back(fmt::format("'{}' of the space is now {}; it was {}", rules,
                                     json_text(outline.at(rules)), json_text(before.at(rules))));
}

void SpaceChange::compare_parameters(const Json& before) {
  for (const Json& old : before)
    if (!now_.find(old.at("path").get<std::string>()))
      conflicts_.push_back(
          fmt::format("the parameter '{}' is missing", old.at("path").get<std::string>()));
  for (const Parameter& parameter : now_.parameters()) {
    const auto found = std::find_if(before.begin(), before.end(), [&](const Json& old) {
      return old.at("path") == parameter.path;
    });
    if (found == before.end()) {
      conflicts_.push_back(fmt::format("the parameter '{}' is new", parameter.path));
      continue;
    }
    Origin& origin = origins_.emplace_back();
    origin.place = static_cast<std::size_t>(found - before.begin());
    const auto domain = found->at("domain").get<std::string>();
    const std::string said =
        fmt::format("'{}' is now {}; it was {}", parameter.path, parameter.domain, domain);
    if (found->at("choices").is_null() != (parameter.choices == nullptr))
      conflicts_.push_back(said);
    else if (parameter.choices && found->at("choices") != choices_of(parameter))
      compare_choices(found->at("choices"), parameter, origin);
    else if (domain != parameter.domain)
      changes_.push_back(said);
  }
}

void SpaceChange::compare_choices(const Json& before, const Parameter& now, Origin& origin) {
  const Json choices = choices_of(now);
  const std::string said = fmt::format("the values of '{}' are now {}; they were {}", now.path,
                                       text_of(choices), text_of(before));
  if (!before.is_array() || !choices.is_array()) {
    conflicts_.push_back(said);
    return;
  }
  changes_.push_back(said);
  changes_grid_ = changes_grid_ || now.grid;
  if (std::mismatch(before.begin(), before.end(), choices.begin(), choices.end()).first ==
      before.end())
    return;  // new ones came behind the others
  for (const Json& value : before) {
    const auto found = std::find(choices.begin(), choices.end(), value);
    origin.entries.push_back(found == choices.end() ? std::numeric_limits<double>::quiet_NaN()
                                                    : static_cast<double>(found - choices.begin()));
  }
}

void SpaceChange::compare_leaves(const Json& before, const Json& now, const char* kind) {
  for (const auto& [path, value] : before.items()) {
    if (!now.contains(path))
      conflicts_.push_back(fmt::format("the {} '{}' is missing", kind, path));
    else if (now.at(path) != value)
      conflicts_.push_back(fmt::format("the {} '{}' is now {}; it was {}", kind, path,
                                       json_text(now.at(path)), json_text(value)));
  }
  for (const auto& [path, value] : now.items())
    if (!before.contains(path)) conflicts_.push_back(fmt::format("the {} '{}' is new", kind, path));
}

std::optional<Point> SpaceChange::carried(const Point& point) const {
  Point now;
  for (const Origin& origin : origins_) {
    const double entry = point.at(origin.place);
    const bool same = std::isnan(entry) || origin.entries.empty();
    now.push_back(same ? entry : origin.entries.at(static_cast<std::size_t>(entry)));
    if (std::isnan(now.back()) && !std::isnan(entry)) return std::nullopt;
  }
  return now_.allows(now) ? std::optional(std::move(now)) : std::nullopt;
}

std::vector<OutlinePath> outline_paths(const Space& space) {
  const Json outline = parse_json(space.outline(), "the space");
  std::vector<OutlinePath> paths;
  for (const Parameter& parameter : space.parameters()) paths.push_back({parameter.path});
  for (const char* kind : {"constants", "functions"})
    for (const auto& [path, value] : outline.at(kind).items()) paths.push_back({path});
  for (OutlinePath& path : paths)
    for (const Json& condition : outline.at("conditions"))
      if (is_within(path.path, condition.at(0).get<std::string>())) path.is_conditional = true;
  return paths;
}

}  // namespace kolo::search

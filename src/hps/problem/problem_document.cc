#include "hps/problem/problem_document.h"

#include <algorithm>

#include "base/errors.h"
#include "base/registry.h"
#include "base/yaml.h"
#include "search/space/domain_spelling.h"
#include "search/space/json_value.h"
#include "search/space/space_document.h"

namespace kolo::hps {

/// What reads and writes whole problems.
struct ProblemAccess {
  static HpProblem make(search::SpaceDocument document) {
    HpProblem problem;
    problem.spec_ = std::move(document.spec);
    problem.conditions_ = std::move(document.conditions);
    problem.forbidden_ = std::move(document.forbidden);
    // One by one, because each has to be completed to something that the space allows.
    for (Value& point : document.starting_points) problem.add_starting_point(std::move(point));
    (void)problem.space();
    return problem;
  }

  static void set_default(HpProblem& problem, const std::string& path, Value value) {
    const auto space = problem.space();
    (void)space->entry_of(space->index_of(path), value);
    problem.default_values_.insert_or_assign(path, std::move(value));
  }

  static Json write(const HpProblem& problem) {
    if (problem.constraint_)
      throw_error(ErrorCode::unsupported, "a constraint function cannot be written to a file");
    Json json{
        {"kolo_problem", 1},
        {"space", search::write_space_document({problem.spec_, problem.conditions_,
                                                problem.forbidden_, problem.starting_points_})}};
    for (const auto& [path, value] : problem.default_values_)
      json["default_values"][path] = search::json_from_value(value);
    if (problem.objectives_ != 1) json["objectives"] = problem.objectives_;
    return json;
  }
};

namespace {

constexpr std::string_view kSections[] = {"parameters", "conditions", "forbidden",
                                          "starting_points"};
constexpr std::string_view kKeys[] = {
    "kolo_problem", "kolo_space",      "name",           "space",   "parameters", "conditions",
    "forbidden",    "starting_points", "default_values", "program", "objectives"};

bool is_known(std::string_view key) {
  return std::find(std::begin(kKeys), std::end(kKeys), key) != std::end(kKeys);
}

/// A tree of parameters has names of the user's own at its top, among which `space` may be; but
/// that with domains in it is the section, and so is one among sections.
bool is_document(const Json& json) {
  if (json.contains("kolo_problem") || json.contains("kolo_space")) return true;
  const auto items = json.items();
  const bool are_sections = std::all_of(items.begin(), items.end(),
                                        [](const auto& item) { return is_known(item.key()); });
  const auto holds_space = [&](const char* key) {
    return json.contains(key) && json[key].is_object() && !search::is_domain(json[key]) &&
           (are_sections || search::holds_domain(json[key]));
  };
  return holds_space("space") || holds_space("parameters");
}

/// A section beside parameters would become a constant, and nobody would miss it.
void refuse_lone_sections(const Json& tree) {
  const auto refuse = [&](const char* section, bool is_meant) {
    if (is_meant && !search::holds_domain(tree[section]))
      throw_error(ErrorCode::invalid_argument,
                  "'{}' stands beside parameters; put the parameters under `space`. If a constant "
                  "is meant, write {{constant: …}}",
                  section);
  };
  for (const char* section : {"program", "starting_points", "forbidden"})
    refuse(section, tree.contains(section) && tree[section].is_array());
  for (const char* section : {"default_values", "conditions"})
    refuse(section, tree.contains(section) && tree[section].is_object());
}

std::vector<std::string> read_program(const Json& json) {
  std::vector<std::string> words;
  if (json.is_array())
    for (const Json& word : json)
      words.push_back(word.is_string() ? word.get<std::string>() : json_text(word));
  if (words.empty())
    throw_error(ErrorCode::invalid_argument,
                "program: needs a list of words, as [./train, --lr, \"{{lr}}\"]");
  return words;
}

// The space of a document: under `space`, or in sections at the top.
search::SpaceDocument read_space(const Json& json) {
  if (json.contains("space")) {
    for (const std::string_view section : {"parameters", "conditions", "forbidden"})
      if (json.contains(section))
        throw_error(ErrorCode::invalid_argument,
                    "'space' and '{}' stand side by side; put {} "
                    "inside the space",
                    section, section);
    search::SpaceDocument document = search::read_space_document(json["space"]);
    const Json more = json.value("starting_points", Json::array());
    if (!more.is_array())
      throw_error(ErrorCode::invalid_argument, "starting_points: must be a list");
    for (const Json& point : more)
      document.starting_points.push_back(search::value_from_json(point));
    return document;
  }
  Json space{{"kolo_space", json.value("kolo_space", Json(1))}};
  for (const std::string_view section : kSections)
    if (json.contains(section)) space[std::string(section)] = json[std::string(section)];
  return search::read_space_document(space);
}

ProblemDocument read_document(const Json& json) {
  for (const auto& item : json.items())
    if (!is_known(item.key()))
      throw_error(ErrorCode::invalid_argument,
                  "{}. If it is a parameter, put it beside the others in the space",
                  unknown_name("section", item.key(), {std::begin(kKeys), std::end(kKeys)}));
  if (json.value("kolo_problem", Json(1)) != 1)
    throw_error(ErrorCode::unsupported, "version {} of the format; this kolo reads 1",
                json_text(json["kolo_problem"]));
  ProblemDocument document;
  document.problem = ProblemAccess::make(read_space(json));
  if (json.contains("program")) document.program = read_program(json["program"]);
  if (json.contains("name")) document.name = json_field<std::string>(json, "name", "the problem");
  if (json.contains("objectives")) {
    const auto count = json_field<std::int64_t>(json, "objectives", "the problem");
    document.problem.set_objectives(count < 0 ? 0 : static_cast<std::size_t>(count));
  }
  const Json defaults = json.value("default_values", Json::object());
  if (!defaults.is_object())
    throw_error(ErrorCode::invalid_argument, "default_values: must be a dictionary");
  for (const auto& [path, value] : defaults.items())
    ProblemAccess::set_default(document.problem, path, search::value_from_json(value));
  return document;
}

}  // namespace

ProblemDocument read_problem_document(const Json& json, std::string_view origin) {
  try {
    if (json.is_object() && is_document(json)) return read_document(json);
    if (json.is_object()) refuse_lone_sections(json);
    return {ProblemAccess::make(search::read_space_document(json)), {}, {}};
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", origin, error.message()));
  }
}

std::string HpProblem::to_json() const { return json_text(ProblemAccess::write(*this), 2); }

HpProblem HpProblem::from_json(std::string_view text, std::string_view origin) {
  return read_problem_document(parse_json(text, origin), origin).problem;
}

HpProblem HpProblem::from_yaml(std::string_view text, std::string_view origin) {
  return read_problem_document(parse_yaml(text, origin), origin).problem;
}

}  // namespace kolo::hps

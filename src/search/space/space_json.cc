// Spaces as JSON and YAML. The format is described in docs/search.md; it says the same as the
// builder, function by function, because it ends in the same calls.
#include <algorithm>
#include <iterator>

#include "base/errors.h"
#include "base/json.h"
#include "base/registry.h"
#include "base/yaml.h"
#include "kolo/search/space.h"
#include "search/space/domain_spelling.h"
#include "search/space/expression.h"
#include "search/space/json_value.h"
#include "search/space/path.h"
#include "search/space/space_document.h"

namespace kolo::search {
namespace {

constexpr Primitive kWritten[] = {
    Primitive::uniform,     Primitive::quniform,       Primitive::loguniform,
    Primitive::qloguniform, Primitive::randn,          Primitive::qrandn,
    Primitive::randint,     Primitive::qrandint,       Primitive::lograndint,
    Primitive::qlograndint, Primitive::real,           Primitive::integer,
    Primitive::normal,      Primitive::normal_integer, Primitive::choice,
    Primitive::ordinal,     Primitive::categorical,    Primitive::grid_search,
};

// The arguments of one domain, given by place or by name.
class Arguments {
 public:
  Arguments(const std::string& path, std::string_view domain, const Json& json,
            std::initializer_list<const char*> names)
      : path_(path), domain_(domain), names_(names.begin(), names.end()) {
    if (json.is_array()) {
      if (json.size() > names_.size()) refuse("has too many arguments");
      for (std::size_t i = 0; i < json.size(); ++i) values_[names_[i]] = json[i];
    } else if (json.is_object()) {
      for (const auto& [name, value] : json.items()) {
        if (std::find(names_.begin(), names_.end(), name) == names_.end())
          refuse(fmt::format("has no argument '{}'", name));
        values_[name] = value;
      }
    } else {
      refuse("needs a list of arguments");
    }
  }

  double number(const char* name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) refuse(fmt::format("needs the argument '{}'", name));
    if (!found->second.is_number()) refuse(fmt::format("needs a number as '{}'", name));
    return found->second.get<double>();
  }
  double number(const char* name, double otherwise) const {
    return values_.contains(name) ? number(name) : otherwise;
  }
  Prior prior() const {
    const auto found = values_.find("prior");
    if (found == values_.end() || found->second == "uniform") return Prior::uniform;
    if (found->second == "log-uniform") return Prior::log_uniform;
    refuse("needs \"uniform\" or \"log-uniform\" as 'prior'");
  }

  [[noreturn]] void refuse(const std::string& rule) const {
    throw_error(ErrorCode::invalid_argument, "{}: {} {}", path_, domain_, rule);
  }

 private:
  const std::string& path_;
  std::string_view domain_;
  std::vector<std::string> names_;
  std::map<std::string, Json> values_;
};

std::vector<Value> read_values(const std::string& path, std::string_view domain, const Json& json) {
  if (!json.is_array())
    throw_error(ErrorCode::invalid_argument, "{}: {} needs a list of values", path, domain);
  std::vector<Value> values;
  for (const Json& item : json) values.push_back(value_from_json(item));
  return values;
}

Domain read_eval(const std::string& path, const Json& json) {
  if (!json.is_string())
    throw_error(ErrorCode::invalid_argument, "{}: eval needs an expression as text", path);
  try {
    Domain domain = sample_from(compile_expression(json.get<std::string>()));
    domain.text = json.get<std::string>();
    return domain;
  } catch (const Error& error) {
    throw Error(error.code(), path + ": " + error.message());
  }
}

Domain read_domain(Primitive primitive, const std::string& path, const Json& json) {
  const std::string_view name = to_string(primitive);
  const auto arguments = [&](std::initializer_list<const char*> names) {
    return Arguments(path, name, json, names);
  };
  Domain domain;
  domain.primitive = primitive;
  const auto range = [&](const Arguments& given) {
    domain.low = given.number("low");
    domain.high = given.number("high");
  };
  switch (primitive) {
    case Primitive::uniform:
    case Primitive::randint: range(arguments({"low", "high"})); break;
    case Primitive::loguniform:
    case Primitive::lograndint: range(arguments({"low", "high", "base"})); break;
    case Primitive::quniform:
    case Primitive::qrandint: {
      const Arguments given = arguments({"low", "high", "q"});
      range(given);
      domain.quantum = primitive == Primitive::qrandint ? given.number("q", 1) : given.number("q");
      break;
    }
    case Primitive::qloguniform:
    case Primitive::qlograndint: {
      const Arguments given = arguments({"low", "high", "q", "base"});
      range(given);
      domain.quantum = given.number("q");
      break;
    }
    case Primitive::real:
    case Primitive::integer: {
      const Arguments given = arguments({"low", "high", "prior"});
      range(given);
      domain.prior = given.prior();
      break;
    }
    case Primitive::randn: {
      const Arguments given = arguments({"mean", "sd"});
      return randn(given.number("mean", 0), given.number("sd", 1));
    }
    case Primitive::qrandn: {
      const Arguments given = arguments({"mean", "sd", "q"});
      return qrandn(given.number("mean"), given.number("sd"), given.number("q"));
    }
    case Primitive::normal: {
      const Arguments given = arguments({"mean", "sd", "low", "high"});
      const Domain open = normal(given.number("mean"), given.number("sd"));
      return normal(open.mean, open.sd, given.number("low", open.low),
                    given.number("high", open.high));
    }
    case Primitive::normal_integer: {
      const Arguments given = arguments({"mean", "sd", "low", "high"});
      return normal_integer(given.number("mean"), given.number("sd"), given.number("low"),
                            given.number("high"));
    }
    case Primitive::choice: return choice(read_values(path, name, json));
    case Primitive::ordinal: return ordinal(read_values(path, name, json));
    case Primitive::categorical: {
      if (json.is_array()) return categorical(read_values(path, name, json));
      const auto field = [&](const char* key) {
        return json.is_object() && json.contains(key) ? json[key] : Json::array();
      };
      std::vector<double> weights;
      for (const Value& weight : read_values(path, "weights of categorical", field("weights")))
        weights.push_back(weight.as_number());
      return categorical(read_values(path, name, field("values")), std::move(weights));
    }
    case Primitive::grid_search: {
      std::vector<Spec> entries;
      if (!json.is_array())
        throw_error(ErrorCode::invalid_argument, "{}: grid_search needs a list of values", path);
      for (const Json& item : json) {
        if (item.is_object() && item.size() == 1 && item.contains("eval"))
          entries.emplace_back(read_eval(path, item["eval"]));
        else
          entries.emplace_back(value_from_json(item));
      }
      return grid_search(std::move(entries));
    }
    case Primitive::sample_from: break;
  }
  return domain;
}

Spec read_spec(const Json& json, const std::string& path) {
  if (json.is_array()) {
    Spec::List items;
    for (std::size_t i = 0; i < json.size(); ++i)
      items.push_back(read_spec(json[i], join_path(path, std::to_string(i))));
    return items;
  }
  if (json.is_object() && json.size() == 1) {
    const std::string& name = json.begin().key();
    const Json& inside = json.begin().value();
    if (name == "constant" || name == "const") return value_from_json(inside);
    if (name == "eval") return read_eval(path, inside);
    for (const Primitive primitive : kWritten)
      if (to_string(primitive) == name) return read_domain(primitive, path, inside);
  }
  refuse_misspelt_domain(json, path);
  if (!json.is_object()) return value_from_json(json);
  Spec::Dict items;
  for (const auto& [key, item] : json.items())
    items.emplace(key, read_spec(item, join_path(path, key)));
  return items;
}

Clause read_clause(const Json& json, const std::string& where) {
  const auto refuse = [&](const char* rule) {
    throw_error(ErrorCode::invalid_argument, "{}: {}: {}", where, json_text(json), rule);
  };
  if (json.is_array()) {
    std::vector<Clause> clauses;
    for (const Json& item : json) clauses.push_back(read_clause(item, where));
    return all_of(std::move(clauses));
  }
  if (!json.is_object() || json.size() != 1)
    refuse(
        "a clause is one of {\"equals\": [\"path\", value]}, not_equals, less, greater, in, "
        "same, and, or");
  const std::string& kind = json.begin().key();
  const Json& inside = json.begin().value();
  if (!inside.is_array()) refuse("needs a list");
  if (kind == "and" || kind == "or") {
    std::vector<Clause> clauses;
    for (const Json& item : inside) clauses.push_back(read_clause(item, where));
    return kind == "and" ? all_of(std::move(clauses)) : any_of(std::move(clauses));
  }
  if (inside.size() != 2 || !inside[0].is_string()) refuse("needs [\"path\", value]");
  std::string path = inside[0].get<std::string>();
  if (kind == "in") return in(std::move(path), read_values(where, "in", inside[1]));
  if (kind == "same") {
    if (!inside[1].is_string()) refuse("needs two paths");
    return same(std::move(path), inside[1].get<std::string>());
  }
  Value value = value_from_json(inside[1]);
  if (kind == "equals") return equals(std::move(path), std::move(value));
  if (kind == "not_equals") return not_equals(std::move(path), std::move(value));
  if (kind == "less") return less(std::move(path), std::move(value));
  if (kind == "greater") return greater(std::move(path), std::move(value));
  const std::vector<std::string_view> known{"equals", "not_equals", "less", "greater",
                                            "in",     "same",       "and",  "or"};
  throw Error(ErrorCode::invalid_argument, where + ": " + unknown_name("clause", kind, known));
}

constexpr const char* kSectionNames[] = {"parameters", "conditions", "forbidden",
                                         "starting_points"};

/// A tree of parameters has names of the user's own at its top, among which `parameters` may be;
/// but that with domains in it is the section.
bool has_sections(const Json& json) {
  if (json.contains("kolo_space")) return true;
  const auto found = json.find("parameters");
  return found != json.end() && !is_domain(*found) && holds_domain(*found);
}

/// A section beside parameters would become a constant, and nobody would miss it.
void refuse_lone_sections(const Json& tree) {
  for (const char* section : kSectionNames) {
    const auto found = tree.find(section);
    if (found == tree.end() || !found->is_structured() || holds_domain(*found)) continue;
    if (section == std::string_view("parameters")) continue;
    throw_error(ErrorCode::invalid_argument,
                "'{}' stands beside parameters; put the parameters under `parameters`. If a "
                "constant is meant, write {{constant: …}}",
                section);
  }
}

void check_sections(const Json& json) {
  if (json.value("kolo_space", Json(1)) != 1)
    throw_error(ErrorCode::unsupported,
                "the space has version {} of the format, but this kolo reads version 1",
                json_text(json["kolo_space"]));
  const std::vector<std::string_view> known(std::begin(kSectionNames), std::end(kSectionNames));
  for (const auto& field : json.items())
    if (field.key() != "kolo_space" &&
        std::find(known.begin(), known.end(), field.key()) == known.end())
      throw_error(ErrorCode::invalid_argument,
                  "{}. If it is a parameter, put it under `parameters`, too",
                  unknown_name("section", field.key(), known));
}

}  // namespace

SpaceDocument read_space_document(const Json& json) {
  if (!json.is_object())
    throw_error(ErrorCode::invalid_argument, "a space must be a dictionary of parameters");
  SpaceDocument document;
  if (!has_sections(json)) {
    refuse_lone_sections(json);
    document.spec = read_spec(json, "");
    return document;
  }
  check_sections(json);
  const auto section = [&](const char* key, Json empty) {
    if (!json.contains(key) || json[key].is_null()) return empty;
    if (json[key].type() != empty.type())
      throw_error(ErrorCode::invalid_argument, "{}: must be a {}", key,
                  empty.is_array() ? "list" : "dictionary");
    return json[key];
  };
  document.spec = read_spec(section("parameters", Json::object()), "");
  const Json conditions = section("conditions", Json::object());
  for (const auto& [path, clause] : conditions.items())
    document.conditions.emplace_back(path, read_clause(clause, "conditions: " + path));
  for (const Json& clause : section("forbidden", Json::array()))
    document.forbidden.push_back(read_clause(clause, "forbidden"));
  for (const Json& point : section("starting_points", Json::array()))
    document.starting_points.push_back(value_from_json(point));
  return document;
}

namespace {

std::shared_ptr<const Space> read_named(const Json& json, std::string_view origin) {
  try {
    return read_space_document(json).build();
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}", origin, error.message()));
  }
}

}  // namespace

std::shared_ptr<const Space> Space::from_json(std::string_view text, std::string_view origin) {
  return read_named(parse_json(text, origin), origin);
}

std::shared_ptr<const Space> Space::from_yaml(std::string_view text, std::string_view origin) {
  return read_named(parse_yaml(text, origin), origin);
}

}  // namespace kolo::search

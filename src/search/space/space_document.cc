// Spaces written as JSON: the way back from space_json.cc.
#include "search/space/space_document.h"

#include <cmath>
#include <map>
#include <optional>

#include "base/errors.h"
#include "search/space/domain_spelling.h"
#include "search/space/json_value.h"
#include "search/space/path.h"

namespace kolo::search {
namespace {

// A dictionary with one key could be read as a domain, and a list or dictionary among constants
// may hold such a one; so could a text that ends as a call does.
bool reads_as_itself(const Value& value) {
  const bool may_be_call = value.is_string() && value.as_string().ends_with(')');
  return !may_be_call && !value.is_list() && !value.is_dict();
}

Json write_values(const std::vector<Value>& values) {
  Json items = Json::array();
  for (const Value& value : values) items.push_back(json_from_value(value));
  return items;
}

std::string_view to_text(Prior prior) {
  return prior == Prior::log_uniform ? "log-uniform" : "uniform";
}

Json write_eval(const Domain& domain, const std::string& path) {
  if (domain.text.empty())
    throw_error(ErrorCode::unsupported,
                "{}: a function cannot be written to a file; use {{\"eval\": \"expression\"}}",
                path);
  return {{"eval", domain.text}};
}

Json write_normal(const Domain& domain) {
  Json arguments{{"mean", domain.mean}, {"sd", domain.sd}};
  if (std::isfinite(domain.low)) arguments["low"] = domain.low;
  if (std::isfinite(domain.high)) arguments["high"] = domain.high;
  return arguments;
}

Json write_grid(const Domain& domain, const std::string& path) {
  Json items = Json::array();
  for (const Spec& entry : *domain.entries) {
    if (const auto* function = std::get_if<Domain>(&entry.data()))
      items.push_back(write_eval(*function, path));
    else
      items.push_back(json_from_value(std::get<Value>(entry.data())));
  }
  return items;
}

Json write_arguments(const Domain& domain, const std::string& path) {
  switch (domain.primitive) {
    case Primitive::uniform:
    case Primitive::randint:
    case Primitive::loguniform:
    case Primitive::lograndint: return {domain.low, domain.high};
    case Primitive::quniform:
    case Primitive::qrandint:
    case Primitive::qloguniform:
    case Primitive::qlograndint: return {domain.low, domain.high, domain.quantum};
    case Primitive::real:
    case Primitive::integer: return {domain.low, domain.high, to_text(domain.prior)};
    case Primitive::randn: return {domain.mean, domain.sd};
    case Primitive::qrandn: return {domain.mean, domain.sd, domain.quantum};
    case Primitive::normal:
    case Primitive::normal_integer: return write_normal(domain);
    case Primitive::choice:
    case Primitive::ordinal: return write_values(*domain.choices);
    case Primitive::categorical:
      if (domain.weights.empty()) return write_values(*domain.choices);
      return {{"values", write_values(*domain.choices)}, {"weights", domain.weights}};
    case Primitive::grid_search: return write_grid(domain, path);
    case Primitive::sample_from: break;
  }
  throw_error(ErrorCode::internal, "{}: a domain of unknown kind", path);
}

/// The value of a tree without domains.
std::optional<Value> constant_of(const Spec& spec) {
  if (const auto* value = std::get_if<Value>(&spec.data())) return *value;
  if (const auto* list = std::get_if<Spec::List>(&spec.data())) {
    Value::List items;
    for (const Spec& item : *list) {
      auto constant = constant_of(item);
      if (!constant) return std::nullopt;
      items.push_back(*std::move(constant));
    }
    return Value(std::move(items));
  }
  return std::nullopt;
}

Json write_spec(const Spec& spec, const std::string& path) {
  if (const auto value = constant_of(spec)) {
    Json json = json_from_value(*value);
    return reads_as_itself(*value) ? json : Json{{"constant", std::move(json)}};
  }
  if (const auto* domain = std::get_if<Domain>(&spec.data())) {
    if (domain->primitive == Primitive::sample_from) return write_eval(*domain, path);
    return {{std::string(to_string(domain->primitive)), write_arguments(*domain, path)}};
  }
  if (const auto* list = std::get_if<Spec::List>(&spec.data())) {
    Json items = Json::array();
    for (std::size_t i = 0; i < list->size(); ++i)
      items.push_back(write_spec((*list)[i], join_path(path, std::to_string(i))));
    return items;
  }
  Json items = Json::object();
  const auto& dict = std::get<Spec::Dict>(spec.data());
  if (dict.size() == 1 && is_domain_word(dict.begin()->first))
    throw_error(ErrorCode::unsupported,
                "{}: a dictionary whose only key is '{}' would be read as a domain; rename the key",
                path.empty() ? "the space" : path, dict.begin()->first);
  for (const auto& [key, item] : dict) items[key] = write_spec(item, join_path(path, key));
  return items;
}

Json write_clause(const Clause& clause) {
  const auto about = [&](const char* kind, Json said) {
    return Json{{kind, Json::array({clause.path, std::move(said)})}};
  };
  const auto of_clauses = [&](const char* kind) {
    Json inside = Json::array();
    for (const Clause& part : clause.clauses) inside.push_back(write_clause(part));
    return Json{{kind, std::move(inside)}};
  };
  switch (clause.kind) {
    case Clause::Kind::equals: return about("equals", json_from_value(clause.values.at(0)));
    case Clause::Kind::not_equals: return about("not_equals", json_from_value(clause.values.at(0)));
    case Clause::Kind::less: return about("less", json_from_value(clause.values.at(0)));
    case Clause::Kind::greater: return about("greater", json_from_value(clause.values.at(0)));
    case Clause::Kind::in: return about("in", write_values(clause.values));
    case Clause::Kind::same: return about("same", clause.other);
    case Clause::Kind::all_of: return of_clauses("and");
    case Clause::Kind::any_of: return of_clauses("or");
  }
  throw_error(ErrorCode::internal, "a clause of unknown kind");
}

}  // namespace

std::shared_ptr<const Space> SpaceDocument::build(ConstraintFunction constraint) const {
  Space::Builder builder(spec);
  for (const auto& [path, clause] : conditions) builder.condition(path, clause);
  for (const Clause& clause : forbidden) builder.forbid(clause);
  for (const Value& point : starting_points) builder.starting_point(point);
  if (constraint) builder.constraint(std::move(constraint));
  return builder.build();
}

Json write_space_document(const SpaceDocument& document) {
  Json json{{"kolo_space", 1}, {"parameters", write_spec(document.spec, "")}};
  // Several conditions on one path must all hold, and a file has one place for them.
  std::map<std::string, std::vector<Clause>> by_path;
  for (const auto& [path, clause] : document.conditions) by_path[path].push_back(clause);
  for (auto& [path, clauses] : by_path)
    json["conditions"][path] =
        write_clause(clauses.size() == 1 ? clauses[0] : all_of(std::move(clauses)));
  for (const Clause& clause : document.forbidden) json["forbidden"].push_back(write_clause(clause));
  for (const Value& point : document.starting_points)
    json["starting_points"].push_back(json_from_value(point));
  return json;
}

}  // namespace kolo::search

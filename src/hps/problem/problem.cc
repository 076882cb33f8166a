// A change is made on a copy, checked, and moved into place only then: a mistake is reported by the
// call that made it, and the problem stays as it was. A hyperparameter is checked in a space of its
// own, and the whole space is built when it is next needed; so adding n of them does not build the
// whole space n times. Conditions, clauses and starting points refer to others, so each builds the
// whole space. The default configuration is filled in dependency order, because a parameter is
// active or not by the values before it.
#include "kolo/hps/problem.h"

#include <cmath>

#include "base/errors.h"
#include "kolo/random.h"
#include "search/space/path.h"
#include "search/space/space_document.h"

namespace kolo::hps {
namespace {

using search::Parameter;
using search::Spec;

void collect_names(const Spec& spec, const std::string& path, std::vector<std::string>& names) {
  if (const auto* dict = std::get_if<Spec::Dict>(&spec.data())) {
    for (const auto& [key, item] : *dict) collect_names(item, search::join_path(path, key), names);
  } else if (const auto* list = std::get_if<Spec::List>(&spec.data())) {
    for (std::size_t i = 0; i < list->size(); ++i)
      collect_names((*list)[i], search::join_path(path, std::to_string(i)), names);
  } else {
    names.push_back(path);
  }
}

// Where an entry lies when nobody said: ConfigSpace's rule.
double middle_entry(const Parameter& parameter) {
  if (!parameter.is_number()) return parameter.low;
  if (parameter.normal) return parameter.mean;
  if (!std::isfinite(parameter.low) || !std::isfinite(parameter.high)) return 0;
  if (parameter.log) return std::sqrt(parameter.low * parameter.high);
  return (parameter.low + parameter.high) / 2;
}

// The same tree with one more leaf. Throws already_exists.
Spec with_leaf(Spec tree, std::string_view path, Spec leaf) {
  Spec* here = &tree;
  std::string walked;
  search::PathWalk walk(path);
  if (walk.done()) throw_error(ErrorCode::invalid_argument, "a hyperparameter needs a name");
  while (true) {
    auto* dict = std::get_if<Spec::Dict>(&here->data());
    if (dict == nullptr)
      throw_error(ErrorCode::already_exists, "hyperparameter '{}': '{}' is one already", path,
                  walked);
    const std::string key(walk.next());
    if (key.empty())
      throw_error(ErrorCode::invalid_argument, "hyperparameter '{}': a part of the name is empty",
                  path);
    walked = search::join_path(walked, key);
    if (walk.done()) {
      if (!dict->emplace(key, std::move(leaf)).second)
        throw_error(ErrorCode::already_exists, "hyperparameter '{}' is there already", path);
      return tree;
    }
    here = &dict->emplace(key, Spec::Dict()).first->second;
  }
}

std::shared_ptr<const search::Space> build_space(
    const Spec& spec, const std::vector<std::pair<std::string, search::Clause>>& conditions,
    const std::vector<search::Clause>& forbidden, const std::vector<Value>& starting_points,
    const search::ConstraintFunction& constraint) {
  return search::SpaceDocument{spec, conditions, forbidden, starting_points}.build(constraint);
}

}  // namespace

Spec HpProblem::add_hyperparameter(const HpValue& value, std::string_view name,
                                   std::optional<Value> default_value) {
  Spec grown = with_leaf(spec_, name, value.spec());
  // Built alone, so that a mistake is found here and not in a space of many.
  const auto alone = search::Space::Builder().add(name, value.spec()).build();
  if (default_value) {
    if (const auto place = alone->find(name))
      (void)alone->entry_of(*place, *default_value);
    else if (const auto* constant = std::get_if<Value>(&value.spec().data());
             constant == nullptr || !(*constant == *default_value))
      throw_error(ErrorCode::invalid_argument,
                  "{}: the default value {} is not a value of this hyperparameter", name,
                  default_value->to_string());
    default_values_.emplace(name, *std::move(default_value));
  }
  spec_ = std::move(grown);
  space_.reset();
  return value.spec();
}

void HpProblem::add_hyperparameters(const std::vector<Hyperparameter>& several) {
  HpProblem grown = *this;  // all of them or none
  for (const Hyperparameter& one : several)
    grown.add_hyperparameter(one.value, one.name, one.default_value);
  *this = std::move(grown);
}

void HpProblem::add_condition(std::string child, search::Clause clause) {
  add_conditions({{std::move(child), std::move(clause)}});
}

void HpProblem::add_conditions(std::vector<std::pair<std::string, search::Clause>> several) {
  auto grown = conditions_;
  grown.insert(grown.end(), std::make_move_iterator(several.begin()),
               std::make_move_iterator(several.end()));
  space_ = build_space(spec_, grown, forbidden_, starting_points_, constraint_);
  conditions_ = std::move(grown);
}

void HpProblem::add_forbidden_clause(search::Clause clause) {
  auto grown = forbidden_;
  grown.push_back(std::move(clause));
  space_ = build_space(spec_, conditions_, grown, starting_points_, constraint_);
  forbidden_ = std::move(grown);
}

void HpProblem::add_starting_point(Value values) {
  auto grown = starting_points_;
  grown.push_back(std::move(values));
  auto built = build_space(spec_, conditions_, forbidden_, grown, constraint_);
  Random probe(0);
  (void)built->point(grown.back(), probe);  // refused when it is forbidden or cannot be completed
  space_ = std::move(built);
  starting_points_ = std::move(grown);
}

void HpProblem::set_constraint_fn(search::ConstraintFunction function) {
  space_ = build_space(spec_, conditions_, forbidden_, starting_points_, function);
  constraint_ = std::move(function);
}

void HpProblem::set_objectives(std::size_t count) {
  if (count == 0) throw_error(ErrorCode::invalid_argument, "a problem needs an objective");
  objectives_ = count;
}

std::shared_ptr<const search::Space> HpProblem::space() const {
  if (std::get<Spec::Dict>(spec_.data()).empty())
    throw_error(ErrorCode::invalid_argument,
                "the problem has no hyperparameters; add_hyperparameter adds one");
  if (space_ == nullptr)
    space_ = build_space(spec_, conditions_, forbidden_, starting_points_, constraint_);
  return space_;
}

std::vector<std::string> HpProblem::hyperparameter_names() const {
  std::vector<std::string> names;
  collect_names(spec_, "", names);
  return names;
}

Value HpProblem::default_configuration() const {
  const auto space = this->space();
  const auto parameters = space->parameters();
  search::Point point(parameters.size(), std::nan(""));
  // Whether a parameter is active depends on those before it.
  for (const std::size_t i : space->dependency_order()) {
    if (!space->is_active(i, point)) continue;
    const auto given = default_values_.find(parameters[i].path);
    point[i] = given != default_values_.end() ? space->entry_of(i, given->second)
                                              : space->nearest(i, middle_entry(parameters[i]));
  }
  Random functions(0);
  Value configuration = space->config(point, functions);
  if (!space->allows(point))
    throw_error(ErrorCode::failed_precondition,
                "the default configuration {} is forbidden; give default values that are allowed",
                configuration.to_string());
  return configuration;
}

void HpProblem::check_configuration(const Value& configuration) const {
  const auto space = this->space();
  if (!space->allows(space->point(configuration)))
    throw_error(ErrorCode::invalid_argument,
                "the configuration {} is forbidden by a clause or the constraint function",
                configuration.to_string());
}

}  // namespace kolo::hps

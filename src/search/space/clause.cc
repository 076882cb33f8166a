// A clause is compiled once: paths become indices of parameters, and values become entries
// (numbers, or indices of choices). Evaluating it is then a comparison of doubles. A clause about
// an inactive parameter, whose entry is NaN, does not hold, whatever its kind.
#include "kolo/search/clause.h"

#include <cmath>
#include <utility>

#include "base/errors.h"
#include "search/space/compiled_clause.h"
#include "search/space/parameter.h"

namespace kolo::search {
namespace {

Clause about(Clause::Kind kind, std::string path, std::vector<Value> values) {
  Clause clause;
  clause.kind = kind;
  clause.path = std::move(path);
  clause.values = std::move(values);
  return clause;
}

std::string joined(const std::vector<Clause>& clauses, const char* word) {
  std::string text;
  for (const Clause& clause : clauses) {
    if (!text.empty()) text += word;
    const bool grouped = clause.kind == Clause::Kind::all_of || clause.kind == Clause::Kind::any_of;
    text += grouped ? '(' + clause.to_string() + ')' : clause.to_string();
  }
  return text;
}

// Where a value that less or greater compares with stands on the axis of the parameter's entries.
double threshold(const Parameter& parameter, const Value& value, const Clause& clause) {
  if (parameter.kind == Parameter::Kind::categorical)
    throw_error(ErrorCode::invalid_argument, "{}: '{}' needs a number or an ordinal, not {}",
                parameter.path, clause.to_string(), parameter.domain);
  if (parameter.kind == Parameter::Kind::ordinal) return value_entry(parameter, value);
  if (!value.is_number() || std::isnan(value.as_number()))
    throw_error(ErrorCode::invalid_argument, "{}: '{}' must compare with a number", parameter.path,
                clause.to_string());
  return value.as_number();
}

}  // namespace

std::string Clause::to_string() const {
  switch (kind) {
    case Kind::equals: return fmt::format("{} == {}", path, values.at(0).to_string());
    case Kind::not_equals: return fmt::format("{} != {}", path, values.at(0).to_string());
    case Kind::less: return fmt::format("{} < {}", path, values.at(0).to_string());
    case Kind::greater: return fmt::format("{} > {}", path, values.at(0).to_string());
    case Kind::in: return fmt::format("{} in {}", path, Value(values).to_string());
    case Kind::same: return fmt::format("{} == {}", path, other);
    case Kind::all_of: return joined(clauses, " and ");
    case Kind::any_of: return joined(clauses, " or ");
  }
  return {};
}

Clause equals(std::string path, Value value) {
  return about(Clause::Kind::equals, std::move(path), {std::move(value)});
}
Clause not_equals(std::string path, Value value) {
  return about(Clause::Kind::not_equals, std::move(path), {std::move(value)});
}
Clause less(std::string path, Value value) {
  return about(Clause::Kind::less, std::move(path), {std::move(value)});
}
Clause greater(std::string path, Value value) {
  return about(Clause::Kind::greater, std::move(path), {std::move(value)});
}
Clause in(std::string path, std::vector<Value> values) {
  return about(Clause::Kind::in, std::move(path), std::move(values));
}
Clause same(std::string path, std::string other) {
  Clause clause = about(Clause::Kind::same, std::move(path), {});
  clause.other = std::move(other);
  return clause;
}
Clause all_of(std::vector<Clause> clauses) {
  Clause clause;
  clause.kind = Clause::Kind::all_of;
  clause.clauses = std::move(clauses);
  return clause;
}
Clause any_of(std::vector<Clause> clauses) {
  Clause clause;
  clause.kind = Clause::Kind::any_of;
  clause.clauses = std::move(clauses);
  return clause;
}

CompiledClause::CompiledClause(const Clause& clause, const ParameterLookup& lookup)
    : kind_(clause.kind) {
  using Kind = Clause::Kind;
  if (kind_ == Kind::all_of || kind_ == Kind::any_of) {
    if (clause.clauses.empty())
      throw_error(ErrorCode::invalid_argument,
                  "a condition of kind and/or has no conditions inside");
    for (const Clause& inner : clause.clauses) clauses_.emplace_back(inner, lookup);
    return;
  }
  const auto [index, parameter] = lookup(clause.path);
  parameter_ = index;
  if (kind_ == Kind::same) {
    const auto [other_index, other] = lookup(clause.other);
    other_ = other_index;
    if (parameter->is_number() != other->is_number())
      throw_error(ErrorCode::invalid_argument, "'{}' compares {} with {}", clause.to_string(),
                  parameter->domain, other->domain);
    if (!parameter->is_number()) {
      left_choices_ = parameter->choices;
      right_choices_ = other->choices;
    }
    return;
  }
  if (clause.values.empty() || (clause.values.size() > 1 && kind_ != Kind::in))
    throw_error(ErrorCode::invalid_argument, "{}: the condition has no value to compare with",
                clause.path);
  for (const Value& value : clause.values)
    entries_.push_back(kind_ == Kind::less || kind_ == Kind::greater
                           ? threshold(*parameter, value, clause)
                           : value_entry(*parameter, value));
}

bool CompiledClause::holds(const Point& point) const {
  using Kind = Clause::Kind;
  if (kind_ == Kind::all_of) {
    for (const CompiledClause& clause : clauses_)
      if (!clause.holds(point)) return false;
    return true;
  }
  if (kind_ == Kind::any_of) {
    for (const CompiledClause& clause : clauses_)
      if (clause.holds(point)) return true;
    return false;
  }
  const double entry = point[parameter_];
  if (std::isnan(entry)) return false;
  switch (kind_) {
    case Kind::equals: return entry == entries_[0];
    case Kind::not_equals: return entry != entries_[0];
    case Kind::less: return entry < entries_[0];
    case Kind::greater: return entry > entries_[0];
    case Kind::in:
      for (const double wanted : entries_)
        if (entry == wanted) return true;
      return false;
    case Kind::same: return is_same(entry, point[other_]);
    default: return false;
  }
}

bool CompiledClause::is_same(double left, double right) const {
  if (std::isnan(right)) return false;
  if (!left_choices_) return left == right;
  return (*left_choices_)[static_cast<std::size_t>(left)] ==
         (*right_choices_)[static_cast<std::size_t>(right)];
}

void CompiledClause::collect(std::vector<std::size_t>& parameters) const {
  if (kind_ == Clause::Kind::all_of || kind_ == Clause::Kind::any_of) {
    for (const CompiledClause& clause : clauses_) clause.collect(parameters);
    return;
  }
  parameters.push_back(parameter_);
  if (kind_ == Clause::Kind::same) parameters.push_back(other_);
}

}  // namespace kolo::search

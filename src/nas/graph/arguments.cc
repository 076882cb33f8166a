// Arguments of operations: checked once, when a node is added, and read by the kinds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/registry.h"
#include "nas/graph/activations.h"
#include "nas/graph/kinds.h"

namespace kolo::nas {
namespace {

[[noreturn]] void refuse(const Argument& argument, const Value& value, std::string_view needed) {
  throw_error(ErrorCode::invalid_argument, "{} must be {}, but is {}", argument.name, needed,
              value.to_string());
}

bool is_whole(const Value& value) {
  return value.is_number() && value.as_number() == std::floor(value.as_number());
}

bool is_whole_from(const Value& value, std::int64_t least) {
  return is_whole(value) && value.as_integer() >= least;
}

bool all_whole_from(const Value& value, std::int64_t least) {
  if (!value.is_list() || value.as_list().empty()) return false;
  for (const Value& item : value.as_list())
    if (!is_whole_from(item, least)) return false;
  return true;
}

bool are_numbers(const Value& value) {
  if (!value.is_list() || value.as_list().empty()) return value.is_number();
  for (const Value& item : value.as_list())
    if (!item.is_number()) return false;
  return true;
}

void check_type(const Argument& argument, const Value& value) {
  const auto need = [&](bool fits, std::string_view needed) {
    if (!fits) refuse(argument, value, needed);
  };
  switch (argument.type) {
    case ArgumentType::count: return need(is_whole_from(value, 1), "a whole number from 1");
    case ArgumentType::counts:
      return need(is_whole_from(value, 1) || all_whole_from(value, 1),
                  "a whole number from 1, or a list of such");
    case ArgumentType::fraction:
      return need(value.is_number() && value.as_number() >= 0 && value.as_number() < 1,
                  "a number from 0, below 1");
    case ArgumentType::number: return need(value.is_number(), "a number");
    case ArgumentType::numbers: return need(are_numbers(value), "a number or a list of numbers");
    case ArgumentType::integer: return need(is_whole(value), "a whole number");
    case ArgumentType::flag: return need(value.is_bool(), "true or false");
    case ArgumentType::activation:
      need(value.is_string(), "the name of an activation");
      (void)activation_of(value.as_string());
      return;
    case ArgumentType::padding:
      return need(value == Value("same") || value == Value("valid"), "\"same\" or \"valid\"");
    case ArgumentType::shape:
      return need(all_whole_from(value, 1), "a list of whole numbers from 1");
    case ArgumentType::nodes: return need(all_whole_from(value, 0), "a list of nodes");
  }
}

void check_names(const Operation& operation, const OperationKind& kind) {
  const auto& values = operation.arguments.as_dict();
  std::vector<std::string_view> known;
  for (const Argument& argument : kind.arguments) {
    known.push_back(argument.name);
    if (argument.required && !values.contains(argument.name))
      throw_error(ErrorCode::invalid_argument, "{} is missing", argument.name);
  }
  for (const auto& [name, value] : values) {
    (void)value;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    if (known.empty())
      throw_error(ErrorCode::invalid_argument, "takes no arguments, but got {}", name);
    throw_unknown_name("argument", name, known, ErrorCode::invalid_argument);
  }
}

}  // namespace

Operation::Operation(std::string the_name) : Operation(std::move(the_name), Value::Dict{}) {}

Operation::Operation(std::string the_name, Value the_arguments, const OperationKind* the_kind)
    : name(std::move(the_name)), arguments(std::move(the_arguments)), kind(the_kind) {}

void Operation::check() const {
  const OperationKind& its_kind = kind_of(*this);
  if (!arguments.is_dict())
    throw_error(ErrorCode::invalid_argument, "{}: the arguments must be a dictionary, but are {}",
                name, arguments.to_string());
  try {
    check_names(*this, its_kind);
    for (const Argument& argument : its_kind.arguments)
      if (const Value* value = arguments.find_path(argument.name)) check_type(argument, *value);
  } catch (const Error& error) {
    throw Error(error.code(), name + ": " + error.message());
  }
}

const Value* Arguments::find(std::string_view name) const {
  const auto& values = values_->as_dict();
  const auto found = values.find(name);
  return found == values.end() ? nullptr : &found->second;
}

bool Arguments::has(std::string_view name) const { return find(name) != nullptr; }

std::int64_t Arguments::integer(std::string_view name) const {
  const Value* value = find(name);
  if (value == nullptr) throw_error(ErrorCode::invalid_argument, "{} is missing", name);
  return value->as_integer();
}

std::int64_t Arguments::integer(std::string_view name, std::int64_t fallback) const {
  const Value* value = find(name);
  return value != nullptr ? value->as_integer() : fallback;
}

double Arguments::number(std::string_view name, double fallback) const {
  const Value* value = find(name);
  return value != nullptr ? value->as_number() : fallback;
}

bool Arguments::flag(std::string_view name, bool fallback) const {
  const Value* value = find(name);
  return value != nullptr ? value->as_bool() : fallback;
}

std::string Arguments::text(std::string_view name, std::string_view fallback) const {
  const Value* value = find(name);
  return value != nullptr ? value->as_string() : std::string(fallback);
}

std::vector<std::int64_t> Arguments::counts(std::string_view name, std::size_t dimensions,
                                            std::vector<std::int64_t> fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_list()) return std::vector<std::int64_t>(dimensions, value->as_integer());
  Shape all = shape(name);
  if (all.size() != dimensions)
    throw_error(ErrorCode::invalid_argument,
                "{} has {} numbers for {} dimension{}; give one number, or one for each dimension",
                name, all.size(), dimensions, dimensions == 1 ? "" : "s");
  return all;
}

std::vector<double> Arguments::numbers(std::string_view name) const {
  const Value* value = find(name);
  std::vector<double> all;
  if (value == nullptr) return all;
  if (!value->is_list()) return {value->as_number()};
  for (const Value& item : value->as_list()) all.push_back(item.as_number());
  return all;
}

Shape Arguments::shape(std::string_view name) const {
  const Value* value = find(name);
  Shape shape;
  if (value != nullptr)
    for (const Value& item : value->as_list()) shape.push_back(item.as_integer());
  return shape;
}

}  // namespace kolo::nas

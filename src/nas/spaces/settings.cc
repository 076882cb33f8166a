#include "nas/spaces/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::nas {

SpaceSettings::SpaceSettings(std::string_view space, const Value& settings,
                             std::vector<std::string_view> known)
    : space_(space) {
  known.emplace_back("regression");
  if (settings.is_nothing()) return;
  if (!settings.is_dict())
    throw_error(ErrorCode::invalid_argument,
                "space {}: the settings must be a dictionary, but are {}", space,
                settings.to_string());
  values_ = settings.as_dict();
  for (const auto& [name, value] : values_) {
    (void)value;
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw_unknown_name(fmt::format("space {}: setting", space), name, known,
                         ErrorCode::invalid_argument);
  }
  (void)flag("regression", true);
}

const Value* SpaceSettings::find(std::string_view name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : &found->second;
}

void SpaceSettings::refuse(std::string_view name, const Value& value,
                           std::string_view needed) const {
  throw_error(ErrorCode::invalid_argument, "space {}: {} must be {}, but is {}", space_, name,
              needed, value.to_string());
}

std::int64_t SpaceSettings::integer(std::string_view name, std::int64_t fallback,
                                    std::int64_t least, std::int64_t most) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_number() || value->as_number() != std::floor(value->as_number()) ||
      value->as_integer() < least || value->as_integer() > most)
    refuse(name, *value, fmt::format("a whole number between {} and {}", least, most));
  return value->as_integer();
}

double SpaceSettings::fraction(std::string_view name, double fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_number() || value->as_number() < 0 || value->as_number() >= 1)
    refuse(name, *value, "a number from 0, below 1");
  return value->as_number();
}

std::vector<double> SpaceSettings::fractions(std::string_view name,
                                             std::vector<double> fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  const std::string_view needed = "a list of numbers from 0, below 1";
  if (!value->is_list() || value->as_list().empty()) refuse(name, *value, needed);
  std::vector<double> all;
  for (const Value& item : value->as_list()) {
    if (!item.is_number() || item.as_number() < 0 || item.as_number() >= 1)
      refuse(name, *value, needed);
    all.push_back(item.as_number());
  }
  return all;
}

std::vector<std::int64_t> SpaceSettings::counts(std::string_view name,
                                                std::vector<std::int64_t> fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  const std::string_view needed = "a list of whole numbers from 1";
  if (!value->is_list() || value->as_list().empty()) refuse(name, *value, needed);
  std::vector<std::int64_t> all;
  for (const Value& item : value->as_list()) {
    if (!item.is_number() || item.as_number() != std::floor(item.as_number()) ||
        item.as_integer() < 1)
      refuse(name, *value, needed);
    all.push_back(item.as_integer());
  }
  return all;
}

bool SpaceSettings::flag(std::string_view name, bool fallback) const {
  const Value* value = find(name);
  if (value == nullptr) return fallback;
  if (!value->is_bool()) refuse(name, *value, "true or false");
  return value->as_bool();
}

NodeId merged_inputs(KSearchSpace& space) {
  const auto& inputs = space.input_shapes();
  if (inputs.size() == 1 && inputs[0].size() == 1) return space.input();
  Operation operation = op::flatten();
  if (inputs.size() > 1) operation = Operation("Concatenate", Value{{"flatten", true}});
  const NodeId merged = space.add_constant("inputs", std::move(operation));
  for (std::size_t i = 0; i < inputs.size(); ++i) space.connect(space.input(i), merged);
  return merged;
}

}  // namespace kolo::nas

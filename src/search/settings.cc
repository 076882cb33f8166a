#include "search/settings.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "base/registry.h"

namespace kolo::search {

SettingsReader::SettingsReader(std::string_view sampler, const SamplerOptions& options)
    : SettingsReader(fmt::format("sampler {}", sampler), options.settings) {}

SettingsReader::SettingsReader(std::string owner, const std::map<std::string, Value>& settings)
    : owner_(std::move(owner)), settings_(settings) {}

const Value* SettingsReader::raw(const char* name) {
  known_.emplace_back(name);
  const auto found = settings_.find(name);
  return found == settings_.end() ? nullptr : &found->second;
}

void SettingsReader::refuse(const char* name, const std::string& rule) const {
  const auto found = settings_.find(name);
  throw_error(ErrorCode::invalid_argument, "{}: {}{}: {}", owner_, name,
              found == settings_.end() ? "" : " = " + found->second.to_string(), rule);
}

double SettingsReader::number(const char* name, double otherwise, double low, double high) {
  const Value* value = raw(name);
  if (value == nullptr) return otherwise;
  if (!value->is_number() || !(value->as_number() >= low && value->as_number() <= high))
    refuse(name, fmt::format("must be a number from {} to {}", low, high));
  return value->as_number();
}

std::int64_t SettingsReader::integer(const char* name, std::int64_t otherwise, std::int64_t low,
                                     std::int64_t high) {
  const Value* value = raw(name);
  if (value == nullptr) return otherwise;
  const std::string rule = fmt::format("must be a whole number from {} to {}", low, high);
  if (!value->is_integer()) refuse(name, rule);
  if (value->as_integer() < low || value->as_integer() > high) refuse(name, rule);
  return value->as_integer();
}

bool SettingsReader::truth(const char* name, bool otherwise) {
  const Value* value = raw(name);
  if (value == nullptr) return otherwise;
  if (!value->is_bool()) refuse(name, "must be true or false");
  return value->as_bool();
}

std::string SettingsReader::text(const char* name, std::string otherwise) {
  const Value* value = raw(name);
  if (value == nullptr) return otherwise;
  if (!value->is_string()) refuse(name, "must be text");
  return value->as_string();
}

std::size_t SettingsReader::one_of(const char* name, std::vector<std::string_view> names,
                                   std::size_t otherwise) {
  const Value* value = raw(name);
  if (value == nullptr) return otherwise;
  if (value->is_string())
    for (std::size_t i = 0; i < names.size(); ++i)
      if (names[i] == value->as_string()) return i;
  refuse(name, fmt::format("must be one of {}", fmt::join(names, ", ")));
}

void SettingsReader::done() const {
  for (const auto& [name, value] : settings_) {
    if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
    const auto near = nearest_name(name, known_);
    throw_error(ErrorCode::invalid_argument, "{}: unknown setting '{}'; {}known: {}", owner_, name,
                near.empty() ? "" : fmt::format("did you mean '{}'? ", near),
                known_.empty() ? "none" : fmt::format("{}", fmt::join(known_, ", ")));
  }
}

}  // namespace kolo::search

#include "tune/trial/shown_config.h"

#include <sstream>

#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace {

using search::Value;

constexpr const char* kNumber = "__kolo_number__";
constexpr const char* kSuggestion = "__kolo_suggestion__";
constexpr const char* kChoice = "__kolo_choice__";
constexpr const char* kOptions = "__kolo_options__";

/// Both members, if a dictionary has these and no others.
const Value* second_of(const Value& value, const char* first, const char* second) {
  if (!value.is_dict() || value.as_dict().size() != 2 || !value.as_dict().contains(first))
    return nullptr;
  const auto found = value.as_dict().find(second);
  return found != value.as_dict().end() ? &found->second : nullptr;
}

/// What was chosen; nothing if the value is not such a choice.
const Value* chosen_of(const Value& value) {
  const Value* options = second_of(value, kChoice, kOptions);
  if (options == nullptr || !options->is_list()) return nullptr;
  const Value& place = value.as_dict().at(kChoice);
  if (!place.is_integer() || place.as_integer() < 0) return nullptr;
  const auto index = static_cast<std::size_t>(place.as_integer());
  return index < options->as_list().size() ? &options->as_list()[index] : nullptr;
}

}  // namespace

Value shown_config(const Value& config) {
  if (const Value* suggestion = second_of(config, kNumber, kSuggestion))
    return shown_config(*suggestion);
  if (const Value* chosen = chosen_of(config)) return shown_config(*chosen);
  if (config.is_dict()) {
    Value::Dict shown;
    for (const auto& [key, value] : config.as_dict()) shown.emplace(key, shown_config(value));
    return Value(std::move(shown));
  }
  if (config.is_list()) {
    Value::List shown;
    for (const Value& value : config.as_list()) shown.push_back(shown_config(value));
    return Value(std::move(shown));
  }
  return config;
}

Value::Dict flat_config(const Value& config, char separator) {
  return flatten(shown_config(config), separator);
}

std::string shown_path(const std::string& path) {
  std::string shown;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, '/');) {
    if (part == kNumber || part == kChoice) break;
    if (part == kSuggestion) continue;
    if (part == kOptions) {
      std::getline(parts, part, '/');  // which option it is in
      continue;
    }
    shown += (shown.empty() ? "" : "/") + part;
  }
  return shown;
}

}  // namespace kolo::tune

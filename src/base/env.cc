#include "base/env.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/deadline.h"
#include "base/errors.h"

namespace kolo {
namespace {

struct Found {
  std::string variable;
  std::string value;
};

std::optional<Found> find(const char* name) {
  for (const char* prefix : {"KOLO_", "HOROVOD_"}) {
    std::string variable = std::string(prefix) + name;
    if (auto value = environment(variable.c_str())) return Found{variable, *value};
  }
  return std::nullopt;
}

template <class T, class Parse>
std::optional<T> parsed(const char* name, const char* what, Parse parse) {
  auto found = find(name);
  if (!found) return std::nullopt;
  char* end = nullptr;
  errno = 0;
  T value = parse(found->value.c_str(), &end);
  if (errno != 0 || *end != '\0')
    throw_error(ErrorCode::invalid_argument, "{}='{}' is not {}", found->variable, found->value,
                what);
  return value;
}

}  // namespace

std::optional<std::string> environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return std::nullopt;
  return std::string(value);
}

std::optional<std::string> setting(const char* name) {
  auto found = find(name);
  if (!found) return std::nullopt;
  return found->value;
}

std::string setting_variable(const char* name) {
  auto found = find(name);
  return found ? found->variable : std::string("KOLO_") + name;
}

std::optional<long long> setting_integer(const char* name) {
  return parsed<long long>(name, "a whole number", [](const char* text, char** end) {
    return std::strtoll(text, end, 10);
  });
}

std::optional<long long> setting_count(const char* name) {
  const auto count = setting_integer(name);
  if (count && *count < 0)
    throw_error(ErrorCode::invalid_argument, "{}='{}' is negative; it must be 0 or more",
                find(name)->variable, find(name)->value);
  return count;
}

std::optional<double> setting_number(const char* name) {
  return parsed<double>(name, "a number",
                        [](const char* text, char** end) { return std::strtod(text, end); });
}

std::optional<std::chrono::milliseconds> setting_seconds(const char* name) {
  constexpr double kLongest = std::chrono::duration<double>(kLongestTime).count();
  const auto seconds = setting_number(name);
  if (!seconds) return std::nullopt;
  if (!(*seconds >= 0))
    throw_error(ErrorCode::invalid_argument, "{}='{}' is not a time in seconds",
                find(name)->variable, find(name)->value);
  return std::chrono::milliseconds(
      static_cast<std::int64_t>(std::ceil(std::min(*seconds, kLongest) * 1000)));
}

std::optional<bool> setting_flag(const char* name) {
  auto found = find(name);
  if (!found) return std::nullopt;
  for (std::string_view yes : {"1", "true", "yes", "on"})
    if (found->value == yes) return true;
  for (std::string_view no : {"0", "false", "no", "off"})
    if (found->value == no) return false;
  throw_error(ErrorCode::invalid_argument, "{}='{}' is neither 1/true/yes/on nor 0/false/no/off",
              found->variable, found->value);
}

}  // namespace kolo

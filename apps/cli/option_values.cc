// Texts as values, and values as texts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/errors.h"
#include "cli/option_set.h"

namespace kolo::cli {
namespace {

std::string limits(const OptionText& text) {
  const auto& details = text.details;
  const bool below = std::isfinite(details.least), above = std::isfinite(details.most);
  if (below && above) return fmt::format(" from {} to {}", details.least, details.most);
  if (below) return fmt::format(" of at least {}", details.least);
  return above ? fmt::format(" of at most {}", details.most) : "";
}

template <class Number>
Number parsed(const OptionText& text, const std::string& given, std::string_view source) {
  Number number{};
  const char* const end = given.data() + given.size();
  const auto [stop, error] = std::from_chars(given.data(), end, number);
  const auto size = static_cast<double>(number);
  if (error != std::errc() || stop != end || !std::isfinite(size) || size < text.details.least ||
      size > text.details.most)
    throw_error(ErrorCode::invalid_argument, "{}: '{}' is not a {}number{}", source, given,
                std::is_floating_point_v<Number> ? "" : "whole ", limits(text));
  return number;
}

bool parsed_flag(const std::string& given, std::string_view source) {
  for (const std::string_view yes : {"1", "true", "yes", "on"})
    if (given == yes) return true;
  for (const std::string_view no : {"0", "false", "no", "off"})
    if (given == no) return false;
  throw_error(ErrorCode::invalid_argument, "{}: '{}' is neither true nor false", source, given);
}

void check_choice(const OptionText& text, const std::string& given, std::string_view source) {
  const auto known = split(text.details.choices, '|');
  if (known.empty() || std::find(known.begin(), known.end(), given) != known.end()) return;
  const std::string most = fmt::format("{}", fmt::join(known.begin(), known.end() - 1, ", "));
  throw_error(ErrorCode::invalid_argument, "{}: must be {}{}{}, not '{}'", source, most,
              known.size() > 1 ? " or " : "", known.back(), given);
}

template <class Value>
Value one(const OptionText& text, const std::string& given, std::string_view source) {
  if constexpr (std::is_arithmetic_v<Value>)
    return parsed<Value>(text, given, source);
  else
    return given;
}

struct Setter {
  const OptionText& text;
  const std::vector<std::string>& given;
  std::string_view source;

  void operator()(bool* flag) const {
    if (parsed_flag(given.back(), source)) *flag = !*flag;
  }
  void operator()(std::vector<std::string>* list) const { *list = given; }
  template <class Value>
  void operator()(Value* value) const {
    *value = one<Value>(text, given.back(), source);
  }
  template <class Value>
  void operator()(std::optional<Value>* value) const {
    *value = one<Value>(text, given.back(), source);
  }
};

struct Shower {
  std::string operator()(const bool* /*flag*/) const { return ""; }
  std::string operator()(const std::vector<std::string>* /*list*/) const { return ""; }
  std::string operator()(const std::filesystem::path* path) const { return path->string(); }
  template <class Value>
  std::string operator()(const Value* value) const {
    return fmt::format("{}", *value);
  }
  template <class Value>
  std::string operator()(const std::optional<Value>* value) const {
    return *value ? fmt::format("{}", **value) : "";
  }
};

}  // namespace

void set_value(const OptionText& text, ValueRef value, const std::vector<std::string>& given,
               std::string_view source) {
  for (const auto& one : given) check_choice(text, one, source);
  std::visit(Setter{text, given, source}, value);
}

std::string value_text(ValueRef value) { return std::visit(Shower{}, value); }

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start < text.size();) {
    const auto end = std::min(text.find(separator, start), text.size());
    if (end > start) parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

}  // namespace kolo::cli

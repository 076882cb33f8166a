#include "base/json.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"

namespace kolo {

namespace {

/// The place of the first bracket that is nested too deeply; text.size() if there is none.
std::size_t too_deep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return i;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return text.size();
}

[[noreturn]] void refuse(std::string_view text, std::string_view origin, std::size_t place,
                         std::string_view why) {
  const std::string_view before = text.substr(0, place);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t start = before.rfind('\n');
  const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
  throw_error(ErrorCode::corruption, "{}:{}:{}: not valid JSON: {}", origin, line, column, why);
}

/// Without the number in brackets that nlohmann's messages begin with.
std::string_view message_of(const Json::exception& error) {
  const std::string_view what = error.what();
  const auto end = what.find("] ");
  return end == std::string_view::npos ? what : what.substr(end + 2);
}

}  // namespace

Json parse_json(std::string_view text, std::string_view origin) {
  if (const auto place = too_deep(text); place < text.size())
    refuse(text, origin, place, fmt::format("it is nested more than {} deep", kDeepestJson));
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // `byte` counts from 1; 0 says that the position is unknown.
    refuse(text, origin, error.byte > 0 ? error.byte - 1 : 0, message_of(error));
  } catch (const Json::exception& error) {
    refuse(text, origin, 0, message_of(error));  // a number out of range
  }
}

std::optional<Json> try_parse_json(std::string_view text) {
  if (too_deep(text) < text.size()) return std::nullopt;
  Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? std::nullopt : std::optional(std::move(value));
}

std::string json_text(const Json& value, int indent) {
  return value.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

void throw_bad_field(const Json& object, const char* key, std::string_view where,
                     std::string_view why) {
  std::string found = object.is_object() && object.contains(key)
                          ? fmt::format(" ({})", object[key].type_name())
                          : "";
  throw_error(ErrorCode::invalid_argument, "{}: '{}' {}{}", where, key, why, found);
}

void throw_bad_number(const Json& number, const char* key, std::string_view where) {
  const auto value = number.get<double>();
  throw_error(
      ErrorCode::invalid_argument, "{}: '{}' {}, not {}", where, key,
      value == std::trunc(value) ? "must be a number of a usual size" : "must be a whole number",
      json_text(number));
}

}  // namespace kolo

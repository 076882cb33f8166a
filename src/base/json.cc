#include "base/json.h"

#include <algorithm>

#include "base/errors.h"

namespace kolo {

Json parse_json(std::string_view text, std::string_view origin) {
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    // `byte` counts from 1; 0 says that the position is unknown.
    std::string_view before = text.substr(0, error.byte > 0 ? error.byte - 1 : 0);
    auto line = 1 + std::count(before.begin(), before.end(), '\n');
    std::size_t start = before.rfind('\n');
    std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
    std::string_view what = error.what();
    if (std::size_t at = what.find("] "); at != std::string_view::npos) what.remove_prefix(at + 2);
    throw_error(ErrorCode::corruption, "{}:{}:{}: not valid JSON: {}", origin, line, column, what);
  }
}

void throw_bad_field(const Json& object, const char* key, std::string_view where,
                     std::string_view why) {
  std::string found = object.is_object() && object.contains(key)
                          ? fmt::format(" ({})", object[key].type_name())
                          : "";
  throw_error(ErrorCode::invalid_argument, "{}: '{}' {}{}", where, key, why, found);
}

}  // namespace kolo

// JSON values, and reading them with errors that say where.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace kolo {

using Json = nlohmann::json;

/// Values that are nested deeper are refused: whoever walks through them does it by recursion.
inline constexpr int kDeepestJson = 200;

/// Parses one value. `origin` (a file name, "the answer of rank 3" …) is named in errors: throws
/// corruption "ORIGIN:LINE:COLUMN: …", also for numbers beyond the range of a double.
Json parse_json(std::string_view text, std::string_view origin);
/// Nothing if the text is not JSON or nested too deeply.
std::optional<Json> try_parse_json(std::string_view text);

/// Text of the value. Bytes of strings that are not UTF-8 become U+FFFD.
std::string json_text(const Json& value, int indent = -1);

/// object[key] as T. Throws invalid_argument naming the key and `where` when it is missing or of
/// another type.
template <class T>
T json_field(const Json& object, const char* key, std::string_view where);

/// For json_field, which would otherwise repeat it for each type.
[[noreturn]] void throw_bad_field(const Json& object, const char* key, std::string_view where,
                                  std::string_view why);

template <class T>
T json_field(const Json& object, const char* key, std::string_view where) {
  if (!object.is_object()) throw_bad_field(object, key, where, "is not inside an object");
  auto found = object.find(key);
  if (found == object.end()) throw_bad_field(object, key, where, "is missing");
  try {
    return found->template get<T>();
  } catch (const Json::exception&) {
    throw_bad_field(object, key, where, "has the wrong type");
  }
}

}  // namespace kolo

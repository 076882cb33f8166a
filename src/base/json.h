// JSON values, and reading them with errors that say where.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace kolo {

using Json = nlohmann::json;

/// Parses one value. `origin` (a file name, "the answer of rank 3" …) is named in errors:
/// throws corruption "ORIGIN:LINE:COLUMN: …".
Json parse_json(std::string_view text, std::string_view origin);

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

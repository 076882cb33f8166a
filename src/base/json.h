// JSON values, and reading them with errors that say where.
#pragma once

#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

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

/// A whole number that T can hold, nothing for every other value. 3.0 is whole. The library's own
/// get<T>() cuts off what does not fit, and is undefined for numbers such as 1e300.
template <class T>
std::optional<T> whole_number(const Json& value) {
  const auto fitting = [](auto number) {
    return std::in_range<T>(number) ? std::optional(static_cast<T>(number)) : std::nullopt;
  };
  if (value.is_number_unsigned()) return fitting(value.get<std::uint64_t>());
  if (value.is_number_integer()) return fitting(value.get<std::int64_t>());
  if (!value.is_number_float()) return std::nullopt;
  constexpr double kBeyond = 9223372036854775808.0;  // the first that int64_t cannot hold
  const auto number = value.get<double>();
  if (number != std::trunc(number) || number < -kBeyond || number >= kBeyond) return std::nullopt;
  return fitting(static_cast<std::int64_t>(number));
}

/// object[key] as T. Throws invalid_argument naming the key and `where` when it is missing, of
/// another type, or a number that is not whole or does not fit where T is an integer.
template <class T>
T json_field(const Json& object, const char* key, std::string_view where);

/// For json_field, which would otherwise repeat them for each type.
[[noreturn]] void throw_bad_field(const Json& object, const char* key, std::string_view where,
                                  std::string_view why);
[[noreturn]] void throw_bad_number(const Json& number, const char* key, std::string_view where);

template <class T>
T json_field(const Json& object, const char* key, std::string_view where) {
  if (!object.is_object()) throw_bad_field(object, key, where, "is not inside an object");
  auto found = object.find(key);
  if (found == object.end()) throw_bad_field(object, key, where, "is missing");
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    if (const auto number = whole_number<T>(*found)) return *number;
    if (found->is_number()) throw_bad_number(*found, key, where);
    throw_bad_field(object, key, where, "has the wrong type");
  } else {
    try {
      return found->template get<T>();
    } catch (const Json::exception&) {
      throw_bad_field(object, key, where, "has the wrong type");
    }
  }
}

}  // namespace kolo

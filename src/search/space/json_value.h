// Values from and to JSON.
#pragma once

#include "base/json.h"
#include "kolo/search/value.h"

namespace kolo::search {

/// Whole numbers beyond the 64-bit range become numbers.
Value value_from_json(const Json& json);
Json json_from_value(const Value& value);

/// What comes from outside may be nested so deeply. It is stored inside of other objects, and JSON
/// that is nested more than kDeepestJson deep is refused when it is read again.
inline constexpr int kDeepestValue = 100;
/// Whether lists and dictionaries are nested more than so many levels deep.
[[nodiscard]] bool is_deeper(const Value& value, int levels);

}  // namespace kolo::search

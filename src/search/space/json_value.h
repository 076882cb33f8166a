// Values from and to JSON.
#pragma once

#include "base/json.h"
#include "kolo/search/value.h"

namespace kolo::search {

/// Whole numbers beyond the 64-bit range become numbers.
Value value_from_json(const Json& json);
Json json_from_value(const Value& value);

}  // namespace kolo::search

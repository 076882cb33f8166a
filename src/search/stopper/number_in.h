// The metric of a result that a stopping rule looks at.
#pragma once

#include <string>
#include <string_view>

#include "base/errors.h"
#include "kolo/search/value.h"

namespace kolo::search {

/// Throws not_found with what the result has instead, which shows a misspelt name.
inline double number_in(const Value& result, const std::string& metric, std::string_view rule) {
  const Value* value = result.find_path(metric);
  if (value == nullptr) {
    std::string names;
    for (const auto& [key, item] : result.as_dict()) names += (names.empty() ? "" : ", ") + key;
    throw_error(ErrorCode::not_found, "{}: the result has no '{}'; it has {}", rule, metric, names);
  }
  return value->as_number();
}

}  // namespace kolo::search

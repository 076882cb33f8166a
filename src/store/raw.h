// Ids and states as they are stored.
#pragma once

#include <cstdint>
#include <type_traits>

#include "base/errors.h"

namespace kolo::store {

template <typename Enum>
constexpr std::int64_t raw(Enum value) noexcept {
  static_assert(std::is_enum_v<Enum>);
  return static_cast<std::int64_t>(value);
}

/// Throws corruption if what was read of a database is none of the values from 0 to `last`.
template <typename Enum>
void check_stored(Enum value, Enum last, const char* what) {
  if (raw(value) < 0 || raw(value) > raw(last))
    throw_error(ErrorCode::corruption, "the database is damaged: {} is {}", what, raw(value));
}

}  // namespace kolo::store

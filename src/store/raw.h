// Ids and states as they are stored.
#pragma once

#include <cstdint>
#include <type_traits>

namespace kolo::store {

template <typename Enum>
constexpr std::int64_t raw(Enum value) noexcept {
  static_assert(std::is_enum_v<Enum>);
  return static_cast<std::int64_t>(value);
}

}  // namespace kolo::store

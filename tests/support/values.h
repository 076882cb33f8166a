// Elements of every type: making them from a seed, reading them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <vector>

#include "kolo/types.h"

namespace kolo::test {

using Bytes = std::vector<std::byte>;

inline constexpr DataType kAllTypes[] = {
    DataType::boolean, DataType::uint8,   DataType::int8,     DataType::int16,   DataType::int32,
    DataType::int64,   DataType::float16, DataType::bfloat16, DataType::float32, DataType::float64};
inline constexpr DataType kFloatTypes[] = {DataType::float16, DataType::bfloat16, DataType::float32,
                                           DataType::float64};

inline bool is_float(DataType type) { return type >= DataType::float16; }
inline bool is_integer(DataType type) { return type >= DataType::uint8 && type <= DataType::int64; }

/// Calls f.template operator()<T>() with the C++ type of `type`.
template <class F>
auto with_type(DataType type, F&& f) {
  switch (type) {
    case DataType::boolean: return f.template operator()<bool>();
    case DataType::uint8: return f.template operator()<std::uint8_t>();
    case DataType::int8: return f.template operator()<std::int8_t>();
    case DataType::int16: return f.template operator()<std::int16_t>();
    case DataType::int32: return f.template operator()<std::int32_t>();
    case DataType::int64: return f.template operator()<std::int64_t>();
    case DataType::float16: return f.template operator()<float16>();
    case DataType::bfloat16: return f.template operator()<bfloat16>();
    case DataType::float32: return f.template operator()<float>();
    case DataType::float64: break;
  }
  return f.template operator()<double>();
}

template <class T>
inline constexpr bool kIsHalf = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// Spacing of T at 1, its smallest step above zero, and its largest value.
template <class T>
struct Precision {
  static constexpr long double epsilon = std::numeric_limits<T>::epsilon();
  static constexpr long double smallest = std::numeric_limits<T>::denorm_min();
  static constexpr long double largest = std::numeric_limits<T>::max();
};
template <>
struct Precision<float16> {
  static constexpr long double epsilon = 0x1p-10L, smallest = 0x1p-24L, largest = 65504.0L;
};
template <>
struct Precision<bfloat16> {
  static constexpr long double epsilon = 0x1p-7L, smallest = 0x1p-133L, largest = 0x1.fep127L;
};

template <class T>
T get(const void* data, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + i * sizeof(T), sizeof(T));
  return value;
}
template <class T>
void put(void* data, std::size_t i, T value) {
  std::memcpy(static_cast<std::byte*>(data) + i * sizeof(T), &value, sizeof(T));
}

template <class T>
long double to_real(T value) {
  if constexpr (kIsHalf<T>)
    return static_cast<float>(value);
  else
    return static_cast<long double>(value);
}
/// Rounds to the nearest T.
template <class T>
T from_real(long double value) {
  if constexpr (kIsHalf<T>)
    return T(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

/// Splittable random numbers (splitmix64): the same on every machine and in every run.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// In [0, bound).
  std::uint64_t below(std::uint64_t bound) { return next() % bound; }
  /// In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

/// What the values shall be good for.
enum class Range {
  wild,      ///< zeros of both signs, subnormals, and values as large as a sum of 64 can stand
  moderate,  ///< floats in [-4, 4), integers small enough that nothing overflows
  products,  ///< near one in absolute value
};

/// `count` elements of `type`; a pure function of its arguments.
Bytes make_values(DataType type, std::size_t count, std::uint64_t seed, Range range);

}  // namespace kolo::test

// Element types and reductions that collectives understand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kolo {

/// Element types. The numbers travel between ranks: never reuse one.
enum class DataType : std::uint8_t {
  boolean = 0,
  uint8 = 1,
  int8 = 2,
  int16 = 3,
  int32 = 4,
  int64 = 5,
  float16 = 6,   ///< IEEE 754 binary16; accumulated in float32
  bfloat16 = 7,  ///< upper half of a float32; accumulated in float32
  float32 = 8,
  float64 = 9,
};
inline constexpr int kDataTypeCount = 10;

/// Reductions, with Horovod's numbers.
///
/// On booleans sum and max mean "any", product and min mean "all"; average and adasum are errors.
/// The average of integers truncates toward zero. Adasum takes floating-point types only.
enum class ReduceOp : std::uint8_t {
  average = 0,
  sum = 1,
  adasum = 2,
  min = 3,
  max = 4,
  product = 5,
};
inline constexpr int kReduceOpCount = 6;

/// 16-bit storage types, converted through float32. Plain data: no arithmetic of their own.
struct float16 {
  std::uint16_t bits = 0;
  float16() = default;
  explicit float16(float value) noexcept;
  explicit operator float() const noexcept;
};
struct bfloat16 {
  std::uint16_t bits = 0;
  bfloat16() = default;
  explicit bfloat16(float value) noexcept;
  explicit operator float() const noexcept;
};

[[nodiscard]] constexpr std::size_t size_of(DataType type) noexcept {
  constexpr std::size_t kSizes[kDataTypeCount] = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return kSizes[static_cast<int>(type)];
}
[[nodiscard]] std::string_view to_string(DataType type) noexcept;
[[nodiscard]] std::string_view to_string(ReduceOp op) noexcept;

/// DataType of a C++ type: data_type_of<float> == DataType::float32.
template <class T>
inline constexpr DataType data_type_of = T::kolo_unknown_element_type;
template <>
inline constexpr DataType data_type_of<bool> = DataType::boolean;
template <>
inline constexpr DataType data_type_of<std::uint8_t> = DataType::uint8;
template <>
inline constexpr DataType data_type_of<std::int8_t> = DataType::int8;
template <>
inline constexpr DataType data_type_of<std::int16_t> = DataType::int16;
template <>
inline constexpr DataType data_type_of<std::int32_t> = DataType::int32;
template <>
inline constexpr DataType data_type_of<std::int64_t> = DataType::int64;
template <>
inline constexpr DataType data_type_of<float16> = DataType::float16;
template <>
inline constexpr DataType data_type_of<bfloat16> = DataType::bfloat16;
template <>
inline constexpr DataType data_type_of<float> = DataType::float32;
template <>
inline constexpr DataType data_type_of<double> = DataType::float64;

}  // namespace kolo

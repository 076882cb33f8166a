#include "kolo/types.h"

#include <bit>
#include <cstring>

namespace kolo {

std::string_view to_string(DataType type) noexcept {
  constexpr std::string_view kNames[kDataTypeCount] = {"bool",    "uint8",  "int8",    "int16",
                                                       "int32",   "int64",  "float16", "bfloat16",
                                                       "float32", "float64"};
  auto i = static_cast<std::size_t>(type);
  return i < kDataTypeCount ? kNames[i] : "unknown";
}

std::string_view to_string(ReduceOp op) noexcept {
  constexpr std::string_view kNames[kReduceOpCount] = {"average", "sum", "adasum",
                                                       "min",     "max", "product"};
  auto i = static_cast<std::size_t>(op);
  return i < kReduceOpCount ? kNames[i] : "unknown";
}

float16::float16(float value) noexcept {
  std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  std::uint16_t sign = static_cast<std::uint16_t>((x >> 16) & 0x8000);
  x &= 0x7fffffff;
  if (x >= 0x47800000) {  // 65536 and up, infinity, NaN
    bits = static_cast<std::uint16_t>(sign | (x > 0x7f800000 ? 0x7e00 : 0x7c00));
  } else if (x < 0x38800000) {  // below the smallest normal: add so that the hardware rounds for us
    float shifted = std::bit_cast<float>(x) + 0.5F;
    bits = static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000));
  } else {
    std::uint32_t odd = (x >> 13) & 1;
    bits = static_cast<std::uint16_t>(sign | ((x - 0x38000000 + 0xfff + odd) >> 13));
  }
}

float16::operator float() const noexcept {
  std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  std::uint32_t x = bits & 0x7fff;
  if (x >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (x & 0x3ff) << 13);
  if (x >= 0x400) return std::bit_cast<float>(sign | ((x << 13) + 0x38000000));
  float subnormal = static_cast<float>(x) * 0x1p-24F;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(subnormal) | sign);
}

bfloat16::bfloat16(float value) noexcept {
  std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  if ((x & 0x7fffffff) > 0x7f800000)
    bits = static_cast<std::uint16_t>((x >> 16) | 0x40);  // a NaN stays a NaN
  else
    bits = static_cast<std::uint16_t>((x + 0x7fff + ((x >> 16) & 1)) >> 16);
}

bfloat16::operator float() const noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

}  // namespace kolo

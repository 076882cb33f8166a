#include "kolo/types.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace kolo {
namespace {

// Value of a 16-bit float from its definition: sign, exponent field, fraction field.
double decode(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const double sign = bits & 0x8000 ? -1.0 : 1.0;
  if (exponent == (1 << exponent_bits) - 1) return fraction != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
  return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
}

template <class T>
constexpr int kExponentBits = std::is_same_v<T, float16> ? 5 : 8;

template <class T>
T from_bits(std::uint32_t bits) {
  T value;
  value.bits = static_cast<std::uint16_t>(bits);
  return value;
}

template <class T>
class HalfTest : public testing::Test {};
using HalfTypes = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(HalfTest, HalfTypes);

TYPED_TEST(HalfTest, EveryPatternHasItsValueAndComesBack) {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = from_bits<TypeParam>(bits);
    const auto value = static_cast<float>(half);
    const double expected = decode(half.bits, kExponentBits<TypeParam>);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_TRUE(std::isnan(static_cast<float>(TypeParam(value)))) << bits;
    } else {
      ASSERT_EQ(static_cast<double>(value), expected) << bits;
      ASSERT_EQ(std::signbit(value), (bits & 0x8000) != 0) << bits;
      ASSERT_EQ(TypeParam(value).bits, bits);
    }
  }
}

// Between neighbours a < b: below the middle rounds to a, above to b, the middle to the even one.
TYPED_TEST(HalfTest, RoundsToNearestEven) {
  const std::uint32_t infinity = ((1U << kExponentBits<TypeParam>)-1)
                                 << (15 - kExponentBits<TypeParam>);
  for (std::uint32_t bits = 0; bits + 1 < infinity; ++bits) {
    const double a = decode(static_cast<std::uint16_t>(bits), kExponentBits<TypeParam>);
    const double b = decode(static_cast<std::uint16_t>(bits + 1), kExponentBits<TypeParam>);
    const auto middle = static_cast<float>((a + b) / 2);
    ASSERT_EQ(static_cast<double>(middle), (a + b) / 2) << "the middle must be exact";
    const std::uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    ASSERT_EQ(TypeParam(middle).bits, even) << bits;
    ASSERT_EQ(TypeParam(-middle).bits, even | 0x8000) << bits;
    ASSERT_EQ(TypeParam(std::nextafterf(middle, 0)).bits, bits) << bits;
    ASSERT_EQ(TypeParam(std::nextafterf(middle, INFINITY)).bits, bits + 1) << bits;
  }
}

TYPED_TEST(HalfTest, OverflowsToInfinity) {
  const std::uint32_t infinity = ((1U << kExponentBits<TypeParam>)-1)
                                 << (15 - kExponentBits<TypeParam>);
  const double largest = decode(static_cast<std::uint16_t>(infinity - 1), kExponentBits<TypeParam>);
  const double below = decode(static_cast<std::uint16_t>(infinity - 2), kExponentBits<TypeParam>);
  // Halfway to what would be the next value rounds up, as the largest value is odd.
  const auto limit = static_cast<float>(largest + (largest - below) / 2);
  EXPECT_EQ(TypeParam(limit).bits, infinity);
  EXPECT_EQ(TypeParam(std::nextafterf(limit, 0)).bits, infinity - 1);
  EXPECT_EQ(TypeParam(std::numeric_limits<float>::max()).bits, infinity);
  EXPECT_EQ(TypeParam(-INFINITY).bits, infinity | 0x8000);
}

TEST(Types, NamesAndSizes) {
  EXPECT_EQ(to_string(DataType::boolean), "bool");
  EXPECT_EQ(to_string(DataType::bfloat16), "bfloat16");
  EXPECT_EQ(to_string(static_cast<DataType>(200)), "unknown");
  EXPECT_EQ(to_string(ReduceOp::adasum), "adasum");
  EXPECT_EQ(to_string(static_cast<ReduceOp>(6)), "unknown");
  EXPECT_EQ(size_of(DataType::boolean), sizeof(bool));
  EXPECT_EQ(size_of(DataType::float16), sizeof(float16));
  EXPECT_EQ(size_of(DataType::int64), sizeof(std::int64_t));
}

}  // namespace
}  // namespace kolo

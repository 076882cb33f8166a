// Exponentials of many numbers at once.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace kolo::search {

/// exp(x) for x <= 0 with a relative error below 3e-6, as a loop that compilers vectorise.
/// Below -87 the result is about 1e-38.
inline float fast_exp(float x) {
  x = x < -87.0F ? -87.0F : x;
  const float scaled = x * 1.44269504F;  // 2^scaled
  const auto whole = static_cast<std::int32_t>(scaled - 0.5F);
  const float t = (scaled - static_cast<float>(whole)) * 0.69314718F;  // in [-ln2/2, ln2/2]
  const float power =
      1.0F + t * (1.0F + t * (0.5F + t * (0.16666667F + t * (0.041666667F + t * 0.0083333333F))));
  return power * std::bit_cast<float>((whole + 127) << 23);
}

/// The largest of at least one value.
inline float largest_of(const float* values, std::size_t count) {
  constexpr std::size_t kLanes = 8;
  float lanes[kLanes];
  for (float& lane : lanes) lane = values[0];
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] = values[i + lane] > lanes[lane] ? values[i + lane] : lanes[lane];
  for (; i < count; ++i) lanes[0] = values[i] > lanes[0] ? values[i] : lanes[0];
  for (const float lane : lanes) lanes[0] = lane > lanes[0] ? lane : lanes[0];
  return lanes[0];
}

/// The sum of exp(values[i] - largest).
inline float sum_exp(const float* values, std::size_t count, float largest) {
  // Several sums side by side: one alone would wait for each addition.
  constexpr std::size_t kLanes = 8;
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      lanes[lane] += fast_exp(values[i + lane] - largest);
  float sum = 0;
  for (; i < count; ++i) sum += fast_exp(values[i] - largest);
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace kolo::search

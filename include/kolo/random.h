// Seeded random streams whose bits are the same on every machine.
//
// The generator is xoshiro256** 1.0 (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", 2021), its state filled by splitmix64. Numbers are made from its bits with integer
// arithmetic and the operations that IEEE 754 rounds in one way only (+ - * / sqrt): no std::
// distributions and no libm, which differ between libraries, and no fused multiply-add (see
// CMakeLists.txt).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace kolo {

/// One stream. Not thread-safe; copying it copies its place in the stream.
/// Satisfies UniformRandomBitGenerator.
class Random {
 public:
  using result_type = std::uint64_t;

  explicit Random(std::uint64_t seed);

  /// An independent stream that depends on this stream's seed, `name` and `index` alone, not on how
  /// many numbers were drawn: Random(seed).stream("shuffle", epoch).
  [[nodiscard]] Random stream(std::string_view name, std::uint64_t index = 0) const;

  /// 64 random bits.
  std::uint64_t next() noexcept;
  result_type operator()() noexcept { return next(); }
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return UINT64_MAX; }

  /// In [0, 1), a multiple of 2^-53.
  double uniform() noexcept;
  /// In [low, high); low when they are equal. Throws invalid_argument unless low <= high, both
  /// finite.
  double uniform(double low, double high);
  /// In [0, limit), every value equally likely. Throws invalid_argument when limit is 0.
  std::uint64_t below(std::uint64_t limit);
  /// Normal distribution with mean 0 and deviation 1 (Marsaglia's polar method).
  double normal() noexcept;

  /// Fisher and Yates' shuffle.
  template <class Container>
  void shuffle(Container& items) {
    using std::swap;
    for (std::size_t left = items.size(); left > 1; --left)
      swap(items[left - 1], items[below(left)]);
  }

 private:
  std::uint64_t seed_;
  std::array<std::uint64_t, 4> state_;
  std::optional<double> spare_normal_;
};

}  // namespace kolo

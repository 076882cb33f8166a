// Sequences that fill the unit cube more evenly than random numbers.
//
// Sobol' (1967), in the Gray-code order of Antonov and Saleev, with primitive polynomials found by
// search, so that there is no table and no limit to the dimensions, and random digital shifts.
// Halton (1960), with a random permutation of the digits of each base.
// Both are functions of (seed, number): any point can be computed without those before it.
#pragma once

#include <cstdint>
#include <vector>

namespace kolo::search {

class SobolSequence {
 public:
  SobolSequence(std::size_t dimensions, std::uint64_t seed);
  /// Coordinate in [0, 1) of point `number` (below 2^32).
  [[nodiscard]] double at(std::uint64_t number, std::size_t dimension) const;

 private:
  static constexpr unsigned kBits = 32;
  std::vector<std::uint32_t> directions_;  // kBits per dimension
  std::vector<std::uint32_t> shifts_;
};

class HaltonSequence {
 public:
  HaltonSequence(std::size_t dimensions, std::uint64_t seed);
  [[nodiscard]] double at(std::uint64_t number, std::size_t dimension) const;

 private:
  std::vector<std::uint32_t> bases_;                      // primes
  std::vector<std::vector<std::uint32_t>> permutations_;  // of digits
};

}  // namespace kolo::search

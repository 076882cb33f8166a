// Sobol': dimension j has 32 direction numbers, which follow from the j-th primitive polynomial by
// a recurrence. The n-th point is the exclusive or of the direction numbers at the set bits of the
// Gray code of n, and of a random shift. Halton: dimension j writes n in the j-th prime base,
// permutes the digits, and mirrors them at the point.
#include "search/sampler/low_discrepancy.h"

#include <bit>
#include <numeric>

#include "kolo/random.h"

namespace kolo::search {
namespace {

// A polynomial over two elements is a number whose bit i is the coefficient of x^i.
// It is primitive if x runs through all 2^degree - 1 non-zero remainders before it repeats.
bool is_primitive(std::uint32_t polynomial) {
  const int degree = std::bit_width(polynomial) - 1;
  const std::uint32_t period = (1U << degree) - 1;
  const auto times = [&](std::uint64_t a, std::uint64_t b) {
    std::uint64_t product = 0;
    for (; b != 0; b >>= 1, a <<= 1)
      if (b & 1U) product ^= a;
    for (int bit = 2 * degree; bit >= degree; --bit)
      if ((product >> bit) & 1U) product ^= std::uint64_t{polynomial} << (bit - degree);
    return product;
  };
  const auto power = [&](std::uint32_t exponent) {
    std::uint64_t result = 1, base = degree == 1 ? (polynomial ^ 2U) : 2;
    for (; exponent != 0; exponent >>= 1, base = times(base, base))
      if (exponent & 1U) result = times(result, base);
    return result;
  };
  if (power(period) != 1) return false;
  std::uint32_t rest = period;
  for (std::uint32_t factor = 2; factor <= rest; ++factor) {
    if (rest % factor != 0) continue;
    while (rest % factor == 0) rest /= factor;
    if (factor != period && power(period / factor) == 1) return false;
  }
  return true;
}

std::uint32_t next_primitive(std::uint32_t polynomial) {
  do polynomial += 2;  // without the constant term, x divides it
  while (!is_primitive(polynomial));
  return polynomial;
}

}  // namespace

SobolSequence::SobolSequence(std::size_t dimensions, std::uint64_t seed)
    : directions_(dimensions * kBits), shifts_(dimensions) {
  const Random source(seed);
  // The free initial numbers are the same for every seed: part of the sequence, not of its shift.
  Random initial(0x50b01);
  std::uint32_t polynomial = 1;
  for (std::size_t j = 0; j < dimensions; ++j) {
    std::uint32_t* v = directions_.data() + j * kBits;
    Random shifting = source.stream("sobol shift", j);
    shifts_[j] = static_cast<std::uint32_t>(shifting.next() >> 32);
    if (j == 0) {
      for (unsigned i = 0; i < kBits; ++i) v[i] = 1U << (kBits - 1 - i);
      continue;
    }
    polynomial = next_primitive(polynomial);
    const auto degree = static_cast<unsigned>(std::bit_width(polynomial) - 1);
    for (unsigned i = 0; i < kBits; ++i) {
      if (i < degree) {
        const auto odd = static_cast<std::uint32_t>(initial.below(1ULL << i)) * 2 + 1;
        v[i] = odd << (kBits - 1 - i);
        continue;
      }
      v[i] = v[i - degree] ^ (v[i - degree] >> degree);
      for (unsigned k = 1; k < degree; ++k)
        if ((polynomial >> (degree - k)) & 1U) v[i] ^= v[i - k];
    }
  }
}

double SobolSequence::at(std::uint64_t number, std::size_t dimension) const {
  const std::uint64_t gray = number ^ (number >> 1);
  std::uint32_t digits = shifts_[dimension];
  for (unsigned i = 0; i < kBits; ++i)
    if ((gray >> i) & 1U) digits ^= directions_[dimension * kBits + i];
  return (digits + 0.5) / 4294967296.0;
}

HaltonSequence::HaltonSequence(std::size_t dimensions, std::uint64_t seed) {
  const Random source(seed);
  for (std::uint32_t candidate = 2; bases_.size() < dimensions; ++candidate) {
    bool prime = true;
    for (const std::uint32_t base : bases_) {
      if (base * base > candidate) break;
      prime = prime && candidate % base != 0;
    }
    if (!prime) continue;
    std::vector<std::uint32_t> permutation(candidate);
    std::iota(permutation.begin(), permutation.end(), 0);
    Random shuffling = source.stream("halton digits", bases_.size());
    shuffling.shuffle(permutation);
    bases_.push_back(candidate);
    permutations_.push_back(std::move(permutation));
  }
}

double HaltonSequence::at(std::uint64_t number, std::size_t dimension) const {
  const std::uint32_t base = bases_[dimension];
  const auto& permutation = permutations_[dimension];
  double value = 0, place = 1;
  // Zeros in front count too, since they are permuted; beyond 2^-53 they change nothing.
  while (place > 1e-16) {
    place /= base;
    value += permutation[number % base] * place;
    number /= base;
  }
  return value < 1 ? value : 1 - 1e-16;
}

}  // namespace kolo::search

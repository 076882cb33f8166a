// A stream is a generator of its own whose seed is a hash of the parent's seed, a name and an
// index. Streams with different names or indices are independent, and drawing from one does not
// change another: this is what makes a replay possible in which only some draws are repeated.
#include "kolo/random.h"

#include <bit>
#include <cmath>

#include "base/errors.h"

namespace kolo {
namespace {

/// splitmix64 (Steele, Lea, Flood 2014): one step of its sequence, and its mixing function.
constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

std::uint64_t mix(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// FNV-1a. Names are short and few; the mixing above does the spreading.
std::uint64_t hash(std::string_view text) noexcept {
  std::uint64_t h = 0xcbf29ce484222325;
  for (char c : text) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return h;
}

/// Natural logarithm of a number in (0, 1), the same bits everywhere: with x = m·2^e and m near 1,
/// log x = e·log 2 + 2·(s + s³/3 + s⁵/5 + …), s = (m-1)/(m+1), |s| < 0.172.
double portable_log(double x) noexcept {
  int exponent = 0;
  double m = std::frexp(x, &exponent);
  if (m < 0.70710678118654752) {
    m *= 2.0;
    --exponent;
  }
  double s = (m - 1.0) / (m + 1.0);
  double square = s * s;
  double sum = 0.0;
  for (int k = 23; k >= 1; k -= 2) sum = sum * square + 1.0 / k;
  return exponent * 0.69314718055994531 + 2.0 * s * sum;
}

}  // namespace

Random::Random(std::uint64_t seed) : seed_(seed) {
  for (auto& word : state_) word = mix(seed += kGolden);
}

Random Random::stream(std::string_view name, std::uint64_t index) const {
  std::uint64_t seed = mix(seed_ + kGolden);
  seed = mix((seed ^ hash(name)) + kGolden);
  return Random(mix((seed ^ index) + kGolden));
}

std::uint64_t Random::next() noexcept {
  auto& s = state_;
  std::uint64_t result = std::rotl(s[1] * 5, 7) * 9;
  std::uint64_t t = s[1] << 17;
  s[2] ^= s[0];
  s[3] ^= s[1];
  s[1] ^= s[2];
  s[0] ^= s[3];
  s[2] ^= t;
  s[3] = std::rotl(s[3], 45);
  return result;
}

double Random::uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::uniform(double low, double high) {
  if (!(std::isfinite(low) && std::isfinite(high) && low <= high))
    throw_error(ErrorCode::invalid_argument, "uniform: [{}, {}) is not a finite interval", low,
                high);
  double u = uniform();
  // Of two products, so that an interval wider than the largest double does not overflow.
  double value = low * (1.0 - u) + high * u;
  if (value < low) return low;
  // Rounding may reach the upper end, which does not belong to the interval.
  return value < high || low == high ? value : std::nextafter(high, low);
}

// Lemire, "Fast random integer generation in an interval", 2019: the upper half of a 128-bit
// product is the answer, the lower half tells when to draw again.
std::uint64_t Random::below(std::uint64_t limit) {
  if (limit == 0) throw_error(ErrorCode::invalid_argument, "below: no number is below 0");
  __extension__ using Wide = unsigned __int128;
  Wide product = static_cast<Wide>(next()) * limit;
  if (static_cast<std::uint64_t>(product) < limit) {
    std::uint64_t threshold = -limit % limit;
    while (static_cast<std::uint64_t>(product) < threshold)
      product = static_cast<Wide>(next()) * limit;
  }
  return static_cast<std::uint64_t>(product >> 64);
}

double Random::normal() noexcept {
  if (spare_normal_) {
    double value = *spare_normal_;
    spare_normal_.reset();
    return value;
  }
  double x, y, square;
  do {
    x = 2.0 * uniform() - 1.0;
    y = 2.0 * uniform() - 1.0;
    square = x * x + y * y;
  } while (square >= 1.0 || square == 0.0);
  double factor = std::sqrt(-2.0 * portable_log(square) / square);
  spare_normal_ = y * factor;
  return x * factor;
}

}  // namespace kolo

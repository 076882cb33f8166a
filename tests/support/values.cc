#include "support/values.h"

namespace kolo::test {
namespace {

template <class T>
T wild_float(Random& random) {
  const long double sign = random.below(2) == 0 ? 1.0L : -1.0L;
  switch (random.below(16)) {
    case 0: return from_real<T>(0.0L);
    case 1: return from_real<T>(-0.0L);
    case 2:
      return from_real<T>(sign * Precision<T>::smallest *
                          static_cast<long double>(1 + random.below(60)));
    case 3:
      return from_real<T>(sign * Precision<T>::largest / 64 *
                          static_cast<long double>(random.uniform()));
    default: return from_real<T>(sign * 4 * static_cast<long double>(random.uniform()));
  }
}

template <class T>
T float_value(Random& random, Range range) {
  const long double sign = random.below(2) == 0 ? 1.0L : -1.0L;
  if (range == Range::wild) return wild_float<T>(random);
  const auto u = static_cast<long double>(random.uniform());
  if (range == Range::products) return from_real<T>(sign * (0.5L + u));
  return from_real<T>(sign * 4 * u);
}

template <class T>
T integer_value(Random& random, Range range) {
  if constexpr (std::is_same_v<T, bool>) {
    // Mostly false or mostly true by range, so that "any" and "all" both see both answers.
    return random.below(4) == 0 ? range != Range::products : range == Range::products;
  } else {
    switch (range) {
      case Range::wild: {
        if (random.below(8) == 0)
          return random.below(2) == 0 ? std::numeric_limits<T>::min()
                                      : std::numeric_limits<T>::max();
        return static_cast<T>(random.next());
      }
      case Range::products:
        return static_cast<T>(static_cast<int>(random.below(5)) - (std::is_signed_v<T> ? 2 : 0));
      case Range::moderate: break;
    }
    // int64 is scaled in float64: stay where that is exact.
    const std::uint64_t bound =
        sizeof(T) == 8 ? std::uint64_t{1} << 48
                       : static_cast<std::uint64_t>(std::numeric_limits<T>::max()) / 16;
    const auto size = static_cast<std::int64_t>(random.below(bound));
    return static_cast<T>(std::is_signed_v<T> && random.below(2) == 0 ? -size : size);
  }
}

}  // namespace

Bytes make_values(DataType type, std::size_t count, std::uint64_t seed, Range range) {
  Bytes values(count * size_of(type));
  Random random(seed);
  with_type(type, [&]<class T>() {
    for (std::size_t i = 0; i < count; ++i) {
      if constexpr (kIsHalf<T> || std::is_floating_point_v<T>)
        put<T>(values.data(), i, float_value<T>(random, range));
      else
        put<T>(values.data(), i, integer_value<T>(random, range));
    }
  });
  return values;
}

}  // namespace kolo::test

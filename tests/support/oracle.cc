#include "support/oracle.h"

#include <algorithm>
#include <cfloat>
#include <cmath>

namespace kolo::test {
namespace {

using testing::AssertionFailure;
using testing::AssertionResult;
using testing::AssertionSuccess;

struct Expected {
  long double value;
  long double tolerance;
};

// What the type accumulates in.
template <class T>
constexpr long double kAccumulatorEpsilon =
    kIsHalf<T> ? Precision<float>::epsilon : Precision<T>::epsilon;

template <class T>
Expected float_expected(std::span<const Bytes> inputs, std::size_t i, ReduceOp op,
                        Scaling scaling) {
  const auto n = static_cast<long double>(inputs.size());
  const long double pre = scaling.prescale;
  const long double post = op == ReduceOp::average ? scaling.postscale / n : scaling.postscale;
  long double value = pre * to_real(get<T>(inputs[0].data(), i));
  long double magnitude = std::fabs(value);
  for (std::size_t r = 1; r < inputs.size(); ++r) {
    const long double x = pre * to_real(get<T>(inputs[r].data(), i));
    switch (op) {
      case ReduceOp::min:
        value = std::isnan(x) || std::isnan(value) ? NAN : std::min(value, x);
        break;
      case ReduceOp::max:
        value = std::isnan(x) || std::isnan(value) ? NAN : std::max(value, x);
        break;
      case ReduceOp::product: value *= x; break;
      default: value += x;
    }
    magnitude = op == ReduceOp::product                      ? std::fabs(value)
                : op == ReduceOp::min || op == ReduceOp::max ? std::max(magnitude, std::fabs(x))
                                                             : magnitude + std::fabs(x);
  }
  value *= post;
  magnitude *= std::fabs(post);
  const bool exact = (op == ReduceOp::min || op == ReduceOp::max || n == 1) &&
                     scaling.prescale == 1 && scaling.postscale == 1;
  if (exact) return {value, 0};
  long double tolerance = (n + 3) * kAccumulatorEpsilon<T> * magnitude;
  tolerance += 2 * Precision<T>::smallest;  // products and scaled values that become subnormal
  if (kIsHalf<T>) tolerance += Precision<T>::epsilon / 2 * std::fabs(value);
  return {value, tolerance};
}

template <class T>
AssertionResult check_floats(const Bytes& result, std::span<const Bytes> inputs, ReduceOp op,
                             Scaling scaling, std::size_t first) {
  for (std::size_t i = 0; i < result.size() / sizeof(T); ++i) {
    const Expected expected = float_expected<T>(inputs, first + i, op, scaling);
    const long double got = to_real(get<T>(result.data(), i));
    if (std::isnan(expected.value) && std::isnan(got)) continue;
    if (got == expected.value) continue;
    if (!(std::fabs(got - expected.value) <= expected.tolerance))
      return AssertionFailure() << "element " << i << ": got " << got << ", expected "
                                << expected.value << " ± " << expected.tolerance;
  }
  return AssertionSuccess();
}

// Scaling of integers is in float64 with truncation toward zero.
template <class T>
T scale_integer(T value, double factor) {
  return factor == 1.0 ? value : static_cast<T>(std::trunc(static_cast<double>(value) * factor));
}

template <class T>
T integer_expected(std::span<const Bytes> inputs, std::size_t i, ReduceOp op, Scaling scaling) {
  using Wrapping = std::uint64_t;
  auto value = scale_integer(get<T>(inputs[0].data(), i), scaling.prescale);
  for (std::size_t r = 1; r < inputs.size(); ++r) {
    const auto x = scale_integer(get<T>(inputs[r].data(), i), scaling.prescale);
    switch (op) {
      case ReduceOp::min: value = std::min(value, x); break;
      case ReduceOp::max: value = std::max(value, x); break;
      case ReduceOp::product:
        value = static_cast<T>(static_cast<Wrapping>(value) * static_cast<Wrapping>(x));
        break;
      default: value = static_cast<T>(static_cast<Wrapping>(value) + static_cast<Wrapping>(x));
    }
  }
  if (op == ReduceOp::average)
    value = static_cast<T>(value / static_cast<std::int64_t>(inputs.size()));
  return scale_integer(value, scaling.postscale);
}

template <class T>
AssertionResult check_integers(const Bytes& result, std::span<const Bytes> inputs, ReduceOp op,
                               Scaling scaling, std::size_t first) {
  for (std::size_t i = 0; i < result.size() / sizeof(T); ++i) {
    const T expected = integer_expected<T>(inputs, first + i, op, scaling);
    const T got = get<T>(result.data(), i);
    if (got != expected)
      return AssertionFailure() << "element " << i << ": got " << +got << ", expected "
                                << +expected;
  }
  return AssertionSuccess();
}

AssertionResult check_booleans(const Bytes& result, std::span<const Bytes> inputs, ReduceOp op,
                               std::size_t first) {
  const bool any = op == ReduceOp::sum || op == ReduceOp::max;
  for (std::size_t i = 0; i < result.size(); ++i) {
    auto is_true = [&](const Bytes& input) { return input[first + i] != std::byte{0}; };
    const bool expected = any ? std::any_of(inputs.begin(), inputs.end(), is_true)
                              : std::all_of(inputs.begin(), inputs.end(), is_true);
    if (result[i] != std::byte{expected})
      return AssertionFailure() << "element " << i << ": got " << static_cast<int>(result[i])
                                << ", expected " << expected;
  }
  return AssertionSuccess();
}

std::vector<double> adasum_pair(const std::vector<double>& a, const std::vector<double>& b) {
  long double dot = 0, norm_a = 0, norm_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    dot += static_cast<long double>(a[i]) * b[i];
    norm_a += static_cast<long double>(a[i]) * a[i];
    norm_b += static_cast<long double>(b[i]) * b[i];
  }
  const long double tiny = std::sqrt(static_cast<long double>(DBL_MIN));
  const long double factor_a = norm_a < tiny ? 1.0L : 1.0L - dot / (2 * norm_a);
  const long double factor_b = norm_b < tiny ? 1.0L : 1.0L - dot / (2 * norm_b);
  std::vector<double> sum(a.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    sum[i] = static_cast<double>(factor_a * a[i] + factor_b * b[i]);
  return sum;
}

}  // namespace

bool is_supported(DataType type, ReduceOp op) {
  if (op == ReduceOp::adasum) return is_float(type);
  if (op == ReduceOp::average) return type != DataType::boolean;
  return true;
}

Range range_for(DataType type, ReduceOp op) {
  switch (op) {
    case ReduceOp::product: return Range::products;
    case ReduceOp::adasum: return Range::moderate;
    case ReduceOp::average: return is_integer(type) ? Range::moderate : Range::wild;
    default: return Range::wild;
  }
}

AssertionResult is_reduction(const Bytes& result, std::span<const Bytes> inputs, DataType type,
                             ReduceOp op, Scaling scaling, std::size_t first) {
  if (inputs.empty() || result.size() + first * size_of(type) > inputs[0].size())
    return AssertionFailure() << "result of " << result.size() << " bytes does not fit the inputs";
  return with_type(type, [&]<class T>() -> AssertionResult {
    if constexpr (std::is_same_v<T, bool>)
      return check_booleans(result, inputs, op, first);
    else if constexpr (std::is_integral_v<T>)
      return check_integers<T>(result, inputs, op, scaling, first);
    else
      return check_floats<T>(result, inputs, op, scaling, first);
  });
}

AssertionResult is_adasum(const Bytes& result, std::span<const Bytes> inputs, DataType type,
                          Scaling scaling) {
  return with_type(type, [&]<class T>() -> AssertionResult {
    const std::size_t count = inputs[0].size() / sizeof(T);
    if (result.size() != inputs[0].size()) return AssertionFailure() << "wrong size";
    std::vector<std::vector<double>> level;
    std::vector<long double> magnitude(count, 0);
    for (const Bytes& input : inputs) {
      auto& values = level.emplace_back(count);
      for (std::size_t i = 0; i < count; ++i) {
        values[i] = static_cast<double>(scaling.prescale * to_real(get<T>(input.data(), i)));
        magnitude[i] += std::fabs(static_cast<long double>(values[i]));
      }
    }
    while (level.size() > 1) {
      std::vector<std::vector<double>> next;
      for (std::size_t i = 0; i + 1 < level.size(); i += 2)
        next.push_back(adasum_pair(level[i], level[i + 1]));
      if (level.size() % 2 == 1) next.push_back(std::move(level.back()));
      level = std::move(next);
    }
    // Factors are at most 1.5 and the tree is as deep as log2 of the ranks; a coefficient's own
    // error is far below the type's precision as dot products are summed in float64.
    const long double depth = 2 + std::log2(static_cast<long double>(inputs.size()));
    for (std::size_t i = 0; i < count; ++i) {
      const long double expected = scaling.postscale * static_cast<long double>(level[0][i]);
      const long double got = to_real(get<T>(result.data(), i));
      long double tolerance = 8 * depth * kAccumulatorEpsilon<T> *
                              std::fabs(static_cast<long double>(scaling.postscale)) * magnitude[i];
      tolerance += Precision<T>::smallest;
      if (kIsHalf<T>) tolerance += Precision<T>::epsilon / 2 * std::fabs(expected);
      if (!(std::fabs(got - expected) <= tolerance))
        return AssertionFailure() << "element " << i << ": got " << got << ", expected " << expected
                                  << " ± " << tolerance;
    }
    return AssertionSuccess();
  });
}

AssertionResult same_bytes(const Bytes& a, const Bytes& b) {
  if (a.size() != b.size()) return AssertionFailure() << a.size() << " bytes against " << b.size();
  auto [at, other] = std::mismatch(a.begin(), a.end(), b.begin());
  if (at == a.end()) return AssertionSuccess();
  return AssertionFailure() << "first difference at byte " << (at - a.begin()) << " of "
                            << a.size();
}

}  // namespace kolo::test

#include "search/surrogate/output_warp.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "search/space/encoder.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

bool standardise(VectorXd& y) {
  y.array() -= y.mean();
  const double deviation = std::sqrt(y.squaredNorm() / static_cast<double>(y.size()));
  if (!(deviation > 0.0) || !std::isfinite(deviation)) {
    y.setZero();
    return false;
  }
  y /= deviation;
  return true;
}

/// Replaces the values above the median, see the head of output_warp.h.
void half_rank(VectorXd& y) {
  std::vector<Index> order(y.size());
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) { return y[a] < y[b]; });
  const std::size_t n = order.size();
  const double median = 0.5 * (y[order[(n - 1) / 2]] + y[order[n / 2]]);
  double good_squares = 0.0, good = 0.0, bad_squares = 0.0, bad = 0.0;
  for (const double value : y) {
    const double square = (value - median) * (value - median);
    (value > median ? bad_squares : good_squares) += square;
    (value > median ? bad : good) += 1.0;
  }
  const double deviation = std::sqrt(good_squares / good);
  if (!(deviation > 0.0)) return;  // half of the values are the same
  if (bad == 0.0 || std::sqrt(bad_squares / bad) <= deviation) return;
  for (std::size_t first = 0; first < n;) {
    std::size_t last = first;  // equal values share their mean rank
    while (last + 1 < n && y[order[last + 1]] == y[order[first]]) ++last;
    if (y[order[first]] > median) {
      const double rank = 0.5 * static_cast<double>(first + last) + 0.5;
      const double value = median + deviation * normal_quantile(rank / static_cast<double>(n));
      for (std::size_t i = first; i <= last; ++i) y[order[i]] = value;
    }
    first = last + 1;
  }
}

double yeo_johnson(double x, double lambda) {
  if (x >= 0.0)
    return std::abs(lambda) < 1e-8 ? std::log1p(x) : std::expm1(lambda * std::log1p(x)) / lambda;
  const double mirrored = 2.0 - lambda;
  return std::abs(mirrored) < 1e-8 ? -std::log1p(-x)
                                   : -std::expm1(mirrored * std::log1p(-x)) / mirrored;
}

/// The logarithm of the likelihood that the transformed values are normal.
double likelihood(const VectorXd& x, double lambda) {
  double sum = 0.0, squares = 0.0, jacobian = 0.0;
  for (const double value : x) {
    const double t = yeo_johnson(value, lambda);
    sum += t;
    squares += t * t;
    jacobian += value >= 0.0 ? std::log1p(value) : -std::log1p(-value);
  }
  const double n = static_cast<double>(x.size());
  const double variance = squares / n - (sum / n) * (sum / n);
  return -0.5 * n * std::log(std::max(variance, 1e-300)) + (lambda - 1.0) * jacobian;
}

/// Golden section: the likelihood has one maximum. A thousand values are enough to find it.
double best_exponent(const VectorXd& all) {
  constexpr Index kEnough = 1000;
  const Index size = std::min(kEnough, all.size());
  VectorXd x(size);
  for (Index i = 0; i < size; ++i) x[i] = all[i * all.size() / size];
  constexpr double kGolden = 0.61803398874989484820;
  double low = -2.0, high = 4.0;
  double a = high - kGolden * (high - low), b = low + kGolden * (high - low);
  double at_a = likelihood(x, a), at_b = likelihood(x, b);
  while (high - low > 0.01) {
    if (at_a > at_b) {
      high = b;
      b = a;
      at_b = at_a;
      a = high - kGolden * (high - low);
      at_a = likelihood(x, a);
    } else {
      low = a;
      a = b;
      at_a = at_b;
      b = low + kGolden * (high - low);
      at_b = likelihood(x, b);
    }
  }
  return 0.5 * (low + high);
}

}  // namespace

VectorXd warp_outputs(const VectorXd& values) {
  VectorXd y = values;
  double worst = -INFINITY;
  for (const double value : y)
    if (!std::isnan(value)) worst = std::max(worst, value);
  if (!std::isfinite(worst)) return VectorXd::Zero(y.size());
  for (double& value : y)
    if (std::isnan(value)) value = worst;
  const double largest = y.cwiseAbs().maxCoeff();
  if (largest > 1e100) y /= largest;  // squares must not overflow
  half_rank(y);
  if (!standardise(y)) return y;
  const double lambda = best_exponent(y);
  for (double& value : y) value = yeo_johnson(value, lambda);
  standardise(y);
  return y;
}

}  // namespace kolo::search

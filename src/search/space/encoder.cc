// to_unit and from_unit are inverse to each other up to rounding. For a discrete parameter in a
// linear range all cells have the same width; in a logarithmic range the cell of a value reaches
// half a step to both sides, so that its width is its probability under the prior.
#include "search/space/encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/errors.h"
#include "kolo/random.h"

namespace kolo::search {
namespace {

// Discrete numbers in a logarithmic range: value v owns [v - step/2, v + step/2).
struct LogEdges {
  double low, span;
  explicit LogEdges(const Parameter& p) {
    const double half = p.is_discrete() ? (p.quantum > 0 ? p.quantum : 1) / 2 : 0;
    low = std::log(p.low - std::min(half, p.low / 2));
    span = std::log(p.high + half) - low;
  }
};

double bell_share(const Parameter& p, double value) {
  const double below = normal_cdf((p.low - p.mean) / p.sd);
  const double above = normal_cdf((p.high - p.mean) / p.sd);
  if (!(above > below)) return 0.5;
  return (normal_cdf((value - p.mean) / p.sd) - below) / (above - below);
}

double bell_value(const Parameter& p, double share) {
  const double below = normal_cdf((p.low - p.mean) / p.sd);
  const double above = normal_cdf((p.high - p.mean) / p.sd);
  // Seven deviations: beyond them the curve has no bits left to tell values apart.
  const double z = normal_quantile(below + share * (above - below));
  return p.mean + p.sd * std::clamp(z, -7.0, 7.0);
}

}  // namespace

Encoder::Encoder(std::shared_ptr<const Space> space, EncoderOptions options)
    : space_(std::move(space)) {
  for (std::size_t i = 0; i < space_->size(); ++i) {
    const Parameter& parameter = space_->parameters()[i];
    EncodedColumns columns{.begin = width_, .count = 1, .ordered = true};
    if (parameter.kind == Parameter::Kind::categorical) {
      columns.ordered = false;
      if (options.categorical == EncoderOptions::Categorical::one_hot &&
          parameter.cardinality <= options.one_hot_limit && parameter.cardinality > 1)
        columns.count = parameter.cardinality;
    }
    width_ += columns.count;
    columns_.push_back(columns);
    if (options.activity && space_->is_conditional(i)) conditional_.push_back(i);
  }
  width_ += conditional_.size();
}

double Encoder::to_unit(std::size_t parameter, double entry) const {
  const Parameter& p = space_->parameters()[parameter];
  if (std::isnan(entry)) return 0.5;
  if (p.cardinality == 1) return 0.5;
  if (p.normal) return std::clamp(bell_share(p, entry), 0.0, 1.0);
  if (p.log) {
    const LogEdges edges(p);
    return std::clamp((std::log(entry) - edges.low) / edges.span, 0.0, 1.0);
  }
  const double range = p.high - p.low;
  if (p.is_discrete()) {
    const double cells = static_cast<double>(p.cardinality);
    return (std::round((entry - p.low) / range * (cells - 1)) + 0.5) / cells;
  }
  return std::clamp((entry - p.low) / range, 0.0, 1.0);
}

double Encoder::from_unit(std::size_t parameter, double unit) const {
  const Parameter& p = space_->parameters()[parameter];
  unit = std::isnan(unit) ? 0.5 : std::clamp(unit, 0.0, 1.0);
  if (p.cardinality == 1) return p.low;
  double value = 0;
  if (p.normal) {
    value = bell_value(p, unit);
  } else if (p.log) {
    const LogEdges edges(p);
    value = std::exp(edges.low + unit * edges.span);
  } else if (p.is_discrete()) {
    const double cells = static_cast<double>(p.cardinality);
    const double cell = std::min(std::floor(unit * cells), cells - 1);
    value = p.low + cell * ((p.high - p.low) / (cells - 1));
  } else {
    value = p.low + unit * (p.high - p.low);
  }
  return space_->nearest(parameter, value);
}

void Encoder::encode(const Point& point, std::span<double> row) const {
  KOLO_CHECK(row.size() == width_ && point.size() == columns_.size());
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const EncodedColumns& columns = columns_[i];
    if (columns.count == 1) {
      row[columns.begin] = to_unit(i, point[i]);
      continue;
    }
    const bool active = !std::isnan(point[i]);
    for (std::size_t k = 0; k < columns.count; ++k)
      row[columns.begin + k] = active ? (point[i] == static_cast<double>(k) ? 1.0 : 0.0) : 0.5;
  }
  std::size_t at = width_ - conditional_.size();
  for (const std::size_t parameter : conditional_)
    row[at++] = std::isnan(point[parameter]) ? 0.0 : 1.0;
}

std::vector<double> Encoder::encode(const Point& point) const {
  std::vector<double> row(width_);
  encode(point, row);
  return row;
}

bool Encoder::decode(std::span<const double> row, Point& point, Random& random) const {
  KOLO_CHECK(row.size() == width_);
  point.assign(columns_.size(), 0);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const EncodedColumns& columns = columns_[i];
    if (columns.count == 1) {
      point[i] = from_unit(i, row[columns.begin]);
      continue;
    }
    const auto begin = row.begin() + static_cast<std::ptrdiff_t>(columns.begin);
    point[i] = static_cast<double>(
        std::max_element(begin, begin + static_cast<std::ptrdiff_t>(columns.count)) - begin);
  }
  return space_->settle(point, random);
}

double normal_cdf(double z) noexcept { return 0.5 * std::erfc(-z / std::numbers::sqrt2); }

// Acklam's approximation (relative error 1e-9), made exact to the last bits by one step of Halley's
// method.
double normal_quantile(double share) noexcept {
  if (!(share > 0)) return -std::numeric_limits<double>::infinity();
  if (!(share < 1)) return std::numeric_limits<double>::infinity();
  // Acklam's coefficients: a rational function in the middle, another one in the tails.
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  constexpr double kTail = 0.02425;
  const auto tail = [&](double q) {
    return (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
           ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1);
  };
  double z = 0;
  if (share < kTail) {
    z = tail(std::sqrt(-2 * std::log(share)));
  } else if (share > 1 - kTail) {
    z = -tail(std::sqrt(-2 * std::log1p(-share)));
  } else {
    const double q = share - 0.5, r = q * q;
    z = (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
        (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1);
  }
  const double error = normal_cdf(z) - share;
  const double step = error * std::sqrt(2 * std::numbers::pi) * std::exp(z * z / 2);
  return z - step / (1 + z * step / 2);
}

}  // namespace kolo::search

#include "search/surrogate/gp_parameters.h"

#include <algorithm>
#include <cmath>

namespace kolo::search {

using Eigen::Index;

GpPrior make_gp_prior(const GpShape& shape) {
  const Index count = shape.parameters();
  GpPrior prior{Eigen::VectorXd(count), Eigen::VectorXd(count), Eigen::VectorXd(count),
                Eigen::VectorXd(count)};
  auto set = [&](Index i, double mean, double deviation, double low, double high) {
    prior.mean[i] = mean;
    prior.precision[i] = 1.0 / (deviation * deviation);
    prior.low[i] = low;
    prior.high[i] = high;
  };
  const double length = std::sqrt(2.0) + 0.5 * std::log(static_cast<double>(shape.groups));
  for (Index i = 0; i < shape.groups; ++i)
    set(i, length, std::sqrt(3.0), std::log(0.1), std::log(100.0));
  set(shape.signal(), 0.0, 1.0, std::log(0.05), std::log(50.0));
  set(shape.noise(), std::log(1e-4), 1.5, std::log(1e-8), std::log(0.5));
  // There are two of these for each input: with a wide prior they, and not the length scales, would
  // explain the first observations.
  for (std::size_t i = 0; i < shape.warped.size(); ++i)
    for (Index j = 0; j < 2; ++j) set(shape.warp(i) + j, 0.0, 0.1, -1.5, 1.5);
  return prior;
}

Warp kumaraswamy(double x, double log_a, double log_b) {
  const double a = std::exp(log_a), b = std::exp(log_b);
  const double inside = std::clamp(x, 1e-9, 1.0 - 1e-9);
  const double log_x = std::log(inside);
  const double power = std::exp(a * log_x);           // x^a
  const double rest = std::max(1.0 - power, 1e-300);  // 1 - x^a
  const double log_rest = std::log(rest);
  const double outer = std::exp(b * log_rest);    // (1 - x^a)^b
  const double slope = b * outer / rest * power;  // b (1 - x^a)^(b-1) x^a
  return {1.0 - outer, slope * a / inside, slope * a * log_x, -outer * b * log_rest};
}

Eigen::MatrixXd scale_inputs(const GpShape& shape, const Eigen::VectorXd& parameters,
                             const Eigen::MatrixXd& inputs) {
  Eigen::MatrixXd scaled = inputs;
  for (std::size_t w = 0; w < shape.warped.size(); ++w) {
    auto column = scaled.col(shape.warped[w]);
    const double log_a = parameters[shape.warp(w)], log_b = parameters[shape.warp(w) + 1];
    for (Index i = 0; i < column.size(); ++i)
      column[i] = kumaraswamy(column[i], log_a, log_b).value;
  }
  for (Index c = 0; c < shape.columns(); ++c)
    scaled.col(c) *= std::exp(-parameters[shape.group[c]]);
  return scaled;
}

}  // namespace kolo::search

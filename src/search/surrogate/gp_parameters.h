// What a Gaussian process is told about its inputs, and the numbers it learns about them.
//
// Inputs are rows of the unit cube. A numeric input is one column; a categorical one is one column
// per choice (1/√2 for the chosen one, 0 for others, so that two different choices are at distance
// 1), and its columns share one length scale: a *group*. Numeric columns may be warped by the
// Kumaraswamy distribution function w(x) = 1 - (1 - x^a)^b (Snoek et al., "Input warping for
// Bayesian optimization of non-stationary functions", 2014).
#pragma once

#include <Eigen/Core>
#include <vector>

namespace kolo::search {

struct GpShape {
  std::vector<int> group;  // of each column
  int groups = 0;
  std::vector<Eigen::Index> warped;  // columns that have a warp, ascending

  [[nodiscard]] Eigen::Index columns() const { return static_cast<Eigen::Index>(group.size()); }
  /// log length scale per group, log signal variance, log noise variance, (log a, log b) per warp.
  [[nodiscard]] Eigen::Index parameters() const {
    return groups + 2 + 2 * static_cast<Eigen::Index>(warped.size());
  }
  [[nodiscard]] Eigen::Index signal() const { return groups; }
  [[nodiscard]] Eigen::Index noise() const { return groups + 1; }
  [[nodiscard]] Eigen::Index warp(std::size_t i) const {
    return groups + 2 + 2 * static_cast<Eigen::Index>(i);
  }
};

/// A normal distribution of the logarithm of each parameter, and the box it is searched in.
struct GpPrior {
  Eigen::VectorXd mean, precision, low, high;
};

/// Length scales as Hvarfner, Hellsten and Nardi, "Vanilla Bayesian optimization performs great in
/// high dimensions" (2024): they grow with the root of the number of inputs.
GpPrior make_gp_prior(const GpShape& shape);

/// Warps and divides by the length scales: the space in which the covariance is isotropic.
Eigen::MatrixXd scale_inputs(const GpShape& shape, const Eigen::VectorXd& parameters,
                             const Eigen::MatrixXd& inputs);

/// w(x) with its derivatives by x, log a and log b.
struct Warp {
  double value, by_x, by_log_a, by_log_b;
};
Warp kumaraswamy(double x, double log_a, double log_b);

}  // namespace kolo::search

#include "search/surrogate/gp_likelihood.h"

#include <cmath>

#include "search/surrogate/cholesky.h"
#include "search/surrogate/dense_kernels.h"
#include "search/surrogate/gp_covariance.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// A·B by the kernels whose bits do not depend on the machine.
MatrixXd product(const MatrixXd& a, const MatrixXd& b) {
  const MatrixXd minus_transposed = -b.transpose();
  MatrixXd result = MatrixXd::Zero(a.rows(), b.cols());
  dense_kernels().subtract_product(a.rows(), b.cols(), a.cols(), a.data(), a.rows(),
                                   minus_transposed.data(), minus_transposed.rows(), result.data(),
                                   result.rows());
  return result;
}

}  // namespace

double GpLikelihood::operator()(const VectorXd& parameters, VectorXd& gradient) const {
  const Index n = inputs_.rows();
  const double signal = std::exp(parameters[shape_.signal()]);
  const double noise = std::exp(parameters[shape_.noise()]);
  const MatrixXd z = scale_inputs(shape_, parameters, inputs_);

  MatrixXd covariance = squared_distances(z, z);
  MatrixXd slopes(n, n);
  dense_kernels().matern52_with_slope(covariance.data(), slopes.data(), covariance.size(), signal);
  covariance.diagonal().array() = signal + noise;
  CholeskyFactor factor;
  factor.factor(covariance, 1e-10 * signal);
  const MatrixXd inverse = factor.inverse();

  const VectorXd ones_solved = inverse.rowwise().sum();
  const double mean = ones_solved.dot(targets_) / (ones_solved.sum() + 1.0);
  const VectorXd residual = targets_.array() - mean;
  VectorXd alpha = residual;
  factor.solve_lower(alpha);
  factor.solve_upper(alpha);

  constexpr double kHalfLog2Pi = 0.91893853320467274178;
  double value = 0.5 * residual.dot(alpha) + factor.half_log_determinant() +
                 static_cast<double>(n) * kHalfLog2Pi + 0.5 * mean * mean;

  const MatrixXd outer = alpha * alpha.transpose() - inverse;
  gradient.setZero(shape_.parameters());
  gradient[shape_.noise()] = -0.5 * noise * outer.diagonal().sum();
  covariance.diagonal().array() = signal;
  gradient[shape_.signal()] = -0.5 * outer.cwiseProduct(covariance).sum();

  const MatrixXd g = outer.cwiseProduct(slopes);
  const VectorXd row_sums = g.rowwise().sum();
  const MatrixXd gz = product(g, z);
  for (Index c = 0; c < shape_.columns(); ++c)
    gradient[shape_.group[c]] -=
        row_sums.cwiseProduct(z.col(c)).dot(z.col(c)) - z.col(c).dot(gz.col(c));
  VectorXd by_a(n), by_b(n);
  for (std::size_t w = 0; w < shape_.warped.size(); ++w) {
    const Index c = shape_.warped[w], at = shape_.warp(w);
    const double inverse_length = std::exp(-parameters[shape_.group[c]]);
    for (Index i = 0; i < n; ++i) {
      const Warp warp = kumaraswamy(inputs_(i, c), parameters[at], parameters[at + 1]);
      by_a[i] = warp.by_log_a * inverse_length;
      by_b[i] = warp.by_log_b * inverse_length;
    }
    const VectorXd pull = row_sums.cwiseProduct(z.col(c)) - gz.col(c);
    gradient[at] += pull.dot(by_a);
    gradient[at + 1] += pull.dot(by_b);
  }

  for (Index i = 0; i < gradient.size(); ++i) {
    const double off = parameters[i] - prior_.mean[i];
    value += 0.5 * prior_.precision[i] * off * off;
    gradient[i] += prior_.precision[i] * off;
  }
  return value;
}

}  // namespace kolo::search

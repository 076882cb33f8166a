// With K the covariance of the observed inputs plus noise, L its Cholesky factor, k the covariances
// of a new input to the observed ones and s² the signal variance: mean = m + kᵀ α with α = K⁻¹ (y −
// m), and variance = s² − |L⁻¹ k|². The mean m of the process has a standard normal prior and takes
// its most likely value (set_targets). A pending row enters L but has α = 0, so that it shrinks the
// variance and leaves the mean as it is.
#include "search/surrogate/gp.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/surrogate/dense_kernels.h"
#include "search/surrogate/gp_covariance.h"
#include "search/surrogate/gp_likelihood.h"
#include "search/surrogate/lbfgs.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

// Rows to learn from when there are more than `most`: the best half of them, and an even sample of
// the others in the order of time.
std::vector<Index> choose_rows(const VectorXd& targets, Index most) {
  std::vector<Index> order(targets.size());
  std::iota(order.begin(), order.end(), Index{0});
  if (targets.size() <= most) return order;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return targets[a] < targets[b]; });
  const Index best = most / 2;
  std::vector<Index> chosen(order.begin(), order.begin() + best);
  std::vector<Index> rest(order.begin() + best, order.end());
  std::sort(rest.begin(), rest.end());
  const Index others = most - best, available = static_cast<Index>(rest.size());
  for (Index i = 0; i < others; ++i) chosen.push_back(rest[i * available / others]);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

}  // namespace

double learn_gp_parameters(const GpShape& shape, const MatrixXd& inputs, const VectorXd& targets,
                           Index most, int evaluations, VectorXd& parameters) {
  const std::vector<Index> rows = choose_rows(targets, most);
  MatrixXd some(rows.size(), inputs.cols());
  VectorXd values(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    some.row(i) = inputs.row(rows[i]);
    values[i] = targets[rows[i]];
  }
  const GpPrior prior = make_gp_prior(shape);
  const GpLikelihood likelihood(shape, prior, some, values);
  parameters = parameters.cwiseMax(prior.low).cwiseMin(prior.high);
  return minimise_lbfgs(
      [&](const VectorXd& at, VectorXd& gradient) { return likelihood(at, gradient); }, parameters,
      prior.low, prior.high, {.evaluations = evaluations, .gradient = 1e-2, .decrease = 1e-5});
}

void GaussianProcess::condition(const MatrixXd& inputs, const VectorXd& parameters) {
  parameters_ = parameters;
  signal_ = std::exp(parameters[shape_.signal()]);
  noise_ = std::exp(parameters[shape_.noise()]);
  floor_ = 1e-10 * signal_;
  scaled_ = scale_inputs(shape_, parameters_, inputs);
  factor_.factor(covariance_lower(scaled_, signal_, noise_), floor_);
  alpha_.resize(0);
}

void GaussianProcess::append(const Eigen::RowVectorXd& input) {
  const MatrixXd row = scale_inputs(shape_, parameters_, input);
  const VectorXd cross = covariance_between(scaled_, row, signal_);
  factor_.append(cross, signal_ + noise_, floor_);
  scaled_.conservativeResize(scaled_.rows() + 1, Eigen::NoChange);
  scaled_.bottomRows(1) = row;
}

void GaussianProcess::set_targets(const VectorXd& targets) {
  VectorXd ones = VectorXd::Ones(targets.size());
  factor_.solve_lower(ones);
  VectorXd solved = targets;
  factor_.solve_lower(solved);
  mean_ = ones.dot(solved) / (ones.squaredNorm() + 1.0);
  alpha_ = solved - mean_ * ones;
  factor_.solve_upper(alpha_);
  const Index known = targets.size();
  alpha_.conservativeResize(size());
  alpha_.tail(size() - known).setZero();
}

void GaussianProcess::append_pending(const Eigen::RowVectorXd& input) {
  append(input);
  alpha_.conservativeResize(alpha_.size() + 1);
  alpha_[alpha_.size() - 1] = 0.0;
}

void GaussianProcess::truncate(Index size) {
  factor_.truncate(size);
  scaled_.conservativeResize(size, Eigen::NoChange);
  if (alpha_.size() > size) alpha_.conservativeResize(size);
}

GaussianProcess::Prediction GaussianProcess::predict(const MatrixXd& inputs) const {
  MatrixXd cross = covariance_between(scale_inputs(shape_, parameters_, inputs), scaled_, signal_);
  Prediction prediction;
  prediction.mean = VectorXd::Constant(inputs.rows(), mean_);
  for (Index j = 0; j < cross.cols(); ++j) prediction.mean += alpha_[j] * cross.col(j);
  factor_.solve_rows(cross);
  prediction.variance = VectorXd::Constant(inputs.rows(), signal_);
  for (Index j = 0; j < cross.cols(); ++j) prediction.variance -= cross.col(j).cwiseAbs2();
  prediction.variance = prediction.variance.cwiseMax(floor_);
  return prediction;
}

VectorXd GaussianProcess::predict_mean(const MatrixXd& inputs) const {
  const MatrixXd cross =
      covariance_between(scale_inputs(shape_, parameters_, inputs), scaled_, signal_);
  VectorXd mean = VectorXd::Constant(inputs.rows(), mean_);
  for (Index j = 0; j < cross.cols(); ++j) mean += alpha_[j] * cross.col(j);
  return mean;
}

GaussianProcess::Slope GaussianProcess::predict_slope(const Eigen::RowVectorXd& input) const {
  const MatrixXd row = scale_inputs(shape_, parameters_, input);
  VectorXd cross = squared_distances(scaled_, row);
  VectorXd slopes(cross.size());
  dense_kernels().matern52_with_slope(cross.data(), slopes.data(), cross.size(), signal_);
  VectorXd solved = cross;
  factor_.solve_lower(solved);
  Slope slope;
  slope.mean = mean_ + cross.dot(alpha_);
  slope.variance = std::max(signal_ - solved.squaredNorm(), floor_);
  factor_.solve_upper(solved);  // K⁻¹ k
  const VectorXd mean_pull = alpha_.cwiseProduct(slopes),
                 variance_pull = solved.cwiseProduct(slopes);
  slope.mean_gradient.resize(input.size());
  slope.variance_gradient.resize(input.size());
  // dk_i/dz = -slope_i (z - z_i), and dz/dx = w'(x) / length.
  for (Index c = 0; c < input.size(); ++c) {
    const VectorXd apart = row(0, c) - scaled_.col(c).array();
    const double by_x = std::exp(-parameters_[shape_.group[c]]);
    slope.mean_gradient[c] = -by_x * mean_pull.dot(apart);
    slope.variance_gradient[c] = 2.0 * by_x * variance_pull.dot(apart);
  }
  for (std::size_t w = 0; w < shape_.warped.size(); ++w) {
    const Index c = shape_.warped[w], at = shape_.warp(w);
    const double by_x = kumaraswamy(input[c], parameters_[at], parameters_[at + 1]).by_x;
    slope.mean_gradient[c] *= by_x;
    slope.variance_gradient[c] *= by_x;
  }
  return slope;
}

}  // namespace kolo::search

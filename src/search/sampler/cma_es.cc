// Names follow Hansen's tutorial: weights_ are w_i (positive for the better half, negative for the
// rest), mu_eff_ is the variance-effective number of parents, c_1, c_mu, c_c and c_sigma are the
// learning rates of the rank-one update, the rank-mu update and the two evolution paths, d_sigma
// damps the step size, chi_ is the expected length of a standard normal vector.
//
// update() takes one generation, best first: it moves the mean, the two paths, the covariance and
// the step size, in this order. The axes (the square root of the covariance) and the whitening (its
// inverse) are computed only after enough generations that the covariance can have changed
// noticeably; keep_margin() then applies the correction for discrete coordinates.
#include "search/sampler/cma_es.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

#include "search/space/encoder.h"

namespace kolo::search {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

CmaDistribution::CmaDistribution(std::vector<std::uint64_t> cells, VectorXd mean, double sigma,
                                 std::size_t population)
    : population_(population), cells_(std::move(cells)), mean_(std::move(mean)), sigma_(sigma) {
  const double d = static_cast<double>(mean_.size()), lambda = static_cast<double>(population_);
  parents_ = population_ / 2;
  weights_.resize(static_cast<Index>(population_));
  for (Index i = 0; i < weights_.size(); ++i)
    weights_[i] = std::log((lambda + 1.0) / 2.0) - std::log(static_cast<double>(i + 1));
  auto good = weights_.head(static_cast<Index>(parents_));
  auto bad = weights_.tail(static_cast<Index>(population_ - parents_));
  mu_eff_ = good.sum() * good.sum() / good.squaredNorm();
  const double mu_bad = bad.sum() * bad.sum() / std::max(bad.squaredNorm(), 1e-300);
  c_1_ = 2.0 / ((d + 1.3) * (d + 1.3) + mu_eff_);
  c_mu_ = std::min(1.0 - c_1_,
                   2.0 * (mu_eff_ - 2.0 + 1.0 / mu_eff_) / ((d + 2.0) * (d + 2.0) + mu_eff_));
  // The negative weights are as large as positive definiteness permits.
  const double limit =
      std::min({1.0 + c_1_ / std::max(c_mu_, 1e-300), 1.0 + 2.0 * mu_bad / (mu_eff_ + 2.0),
                (1.0 - c_1_ - c_mu_) / (d * std::max(c_mu_, 1e-300))});
  good /= good.sum();
  const double negative = -bad.cwiseMin(0.0).sum();
  bad = bad.cwiseMin(0.0) * (negative > 0.0 ? limit / negative : 0.0);
  c_sigma_ = (mu_eff_ + 2.0) / (d + mu_eff_ + 5.0);
  d_sigma_ = 1.0 + 2.0 * std::max(0.0, std::sqrt((mu_eff_ - 1.0) / (d + 1.0)) - 1.0) + c_sigma_;
  c_c_ = (4.0 + mu_eff_ / d) / (d + 4.0 + 2.0 * mu_eff_ / d);
  chi_ = std::sqrt(d) * (1.0 - 1.0 / (4.0 * d) + 1.0 / (21.0 * d * d));
  alpha_ = 1.0 / (d * lambda);
  covariance_ = MatrixXd::Identity(mean_.size(), mean_.size());
  axes_ = whitening_ = covariance_;
  path_sigma_ = path_c_ = VectorXd::Zero(mean_.size());
  widening_ = VectorXd::Ones(mean_.size());
}

VectorXd CmaDistribution::sample(Random& random) const {
  VectorXd z(mean_.size());
  for (double& value : z) value = random.normal();
  return mean_ + sigma_ * widening_.cwiseProduct(axes_ * z);
}

void CmaDistribution::update(const std::vector<VectorXd>& sorted) {
  const Index d = mean_.size();
  const double size = static_cast<double>(d);
  MatrixXd steps(d, static_cast<Index>(sorted.size()));
  for (std::size_t i = 0; i < sorted.size(); ++i)
    steps.col(static_cast<Index>(i)) = (sorted[i] - mean_).cwiseQuotient(widening_) / sigma_;
  // Solutions of an older distribution may lie far out: they are pulled back (Hansen, "Injecting
  // external solutions into CMA-ES", 2011).
  const MatrixXd white = whitening_ * steps;
  const double longest = std::sqrt(size) + 2.0 * size / (size + 2.0);
  VectorXd lengths = white.colwise().norm();
  for (Index i = 0; i < steps.cols(); ++i)
    if (lengths[i] > longest) {
      steps.col(i) *= longest / lengths[i];
      lengths[i] = longest;
    }

  const auto parents = static_cast<Index>(parents_);
  const VectorXd step = steps.leftCols(parents) * weights_.head(parents);
  mean_ += sigma_ * widening_.cwiseProduct(step);
  path_sigma_ = (1.0 - c_sigma_) * path_sigma_ +
                std::sqrt(c_sigma_ * (2.0 - c_sigma_) * mu_eff_) * (whitening_ * step);
  ++generation_;
  const double length = path_sigma_.norm();
  const double fade = 1.0 - std::pow(1.0 - c_sigma_, 2.0 * static_cast<double>(generation_));
  const bool steady = length / std::sqrt(fade) < (1.4 + 2.0 / (size + 1.0)) * chi_;
  path_c_ *= 1.0 - c_c_;
  if (steady) path_c_ += std::sqrt(c_c_ * (2.0 - c_c_) * mu_eff_) * step;

  VectorXd weights = weights_;
  for (Index i = parents; i < weights.size(); ++i)
    weights[i] *= size / std::max(lengths[i] * lengths[i], 1e-300);
  const double stall = steady ? 0.0 : c_1_ * c_c_ * (2.0 - c_c_);
  covariance_ *= 1.0 + stall - c_1_ - c_mu_ * weights_.sum();
  covariance_.noalias() += c_1_ * path_c_ * path_c_.transpose();
  covariance_.noalias() += steps * (c_mu_ * weights).asDiagonal() * steps.transpose();

  sigma_ *= std::exp(std::min(1.0, c_sigma_ / d_sigma_ * (length / chi_ - 1.0)));
  sigma_ = std::clamp(sigma_, 1e-30, 1e6);
  const double patience = 1.0 / ((c_1_ + c_mu_) * size * 10.0);
  if (static_cast<double>(generation_ - decomposed_) >= std::max(1.0, patience)) decompose();
  keep_margin();
}

// Eigenvalues below 1e-16 of the largest are raised to it, so that rounding cannot make the
// covariance indefinite.
void CmaDistribution::decompose() {
  decomposed_ = generation_;
  covariance_ = 0.5 * (covariance_ + covariance_.transpose()).eval();
  const Eigen::SelfAdjointEigenSolver<MatrixXd> solver(covariance_);
  const double top = solver.eigenvalues().maxCoeff();
  condition_ = top / std::max(solver.eigenvalues().minCoeff(), 1e-300);
  const VectorXd roots = solver.eigenvalues().cwiseMax(1e-16 * top).cwiseSqrt();
  axes_ = solver.eigenvectors() * roots.asDiagonal();
  whitening_ =
      solver.eigenvectors() * roots.cwiseInverse().asDiagonal() * solver.eigenvectors().transpose();
}

void CmaDistribution::keep_margin() {
  for (Index i = 0; i < mean_.size(); ++i) {
    const std::uint64_t count = cells_[i];
    if (count < 2) continue;
    const double cells = static_cast<double>(count);
    const double deviation = sigma_ * widening_[i] * std::sqrt(covariance_(i, i));
    double& mean = mean_[i];
    const double cell = std::clamp(std::floor(mean * cells), 0.0, cells - 1.0);
    const double below = cell / cells, above = (cell + 1.0) / cells;
    const bool first = cell == 0.0, last = cell == cells - 1.0;
    if (first || last) {
      // One edge: the mean stays within the distance of it that leaves α beyond.
      const double edge = first ? above : below;
      const double most = normal_quantile(1.0 - alpha_) * deviation;
      mean = std::clamp(mean, edge - most, edge + most);
      continue;
    }
    // Two edges: at least α/2 beyond each.
    const double left = normal_cdf((below - mean) / deviation);
    const double right = 1.0 - normal_cdf((above - mean) / deviation);
    if (left >= 0.5 * alpha_ && right >= 0.5 * alpha_) continue;
    double p_left = std::max(left, 0.5 * alpha_), p_right = std::max(right, 0.5 * alpha_);
    const double inside = std::max(1.0 - left - right, 1e-12);
    // What was given to the tails is taken from all three in proportion to what they have to spare.
    const double excess = 1.0 - p_left - p_right - inside;
    const double spare = p_left + p_right + inside - 1.5 * alpha_;
    p_left += excess / spare * (p_left - 0.5 * alpha_);
    p_right += excess / spare * (p_right - 0.5 * alpha_);
    const double z_left = normal_quantile(1.0 - p_left), z_right = normal_quantile(1.0 - p_right);
    if (!(z_left + z_right > 0.0)) continue;
    mean = (z_left * above + z_right * below) / (z_left + z_right);
    widening_[i] *= (above - below) / (z_left + z_right) / deviation;
  }
}

double CmaDistribution::largest_deviation() const {
  double most = 0.0;
  for (Index i = 0; i < mean_.size(); ++i)
    if (cells_[i] == 0) most = std::max(most, sigma_ * widening_[i] * std::sqrt(covariance_(i, i)));
  return most;
}

bool CmaDistribution::collapsed() const {
  if (condition_ > 1e14 || !mean_.allFinite()) return true;
  const bool any_smooth = std::any_of(cells_.begin(), cells_.end(), [](auto c) { return c == 0; });
  return any_smooth ? largest_deviation() < 1e-12 : sigma_ < 1e-8;
}

}  // namespace kolo::search

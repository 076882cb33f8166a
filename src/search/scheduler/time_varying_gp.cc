#include "search/scheduler/time_varying_gp.h"

#include <cmath>

namespace kolo::search {

TimeVaryingGp::TimeVaryingGp(Eigen::MatrixXd inputs, const Eigen::VectorXd& outputs, Shape shape)
    : inputs_(std::move(inputs)), shape_(shape) {
  Eigen::Index n = inputs_.rows();
  Eigen::MatrixXd covariance(n, n);
  for (Eigen::Index i = 0; i < n; ++i) covariance.col(i) = covariance_with(inputs_.row(i));
  covariance.diagonal().array() += shape_.noise;
  cholesky_.compute(covariance);
  alpha_ = cholesky_.solve(outputs);
}

Eigen::VectorXd TimeVaryingGp::covariance_with(const Eigen::VectorXd& x) const {
  Eigen::Index d = x.size() - 1;
  Eigen::ArrayXd apart =
      (inputs_.rightCols(d).rowwise() - x.tail(d).transpose()).rowwise().squaredNorm().array();
  Eigen::ArrayXd age = (inputs_.col(0).array() - x[0]).abs();
  double keep = std::log1p(-shape_.epsilon) / 2;
  return (-apart / (2 * shape_.lengthscale * shape_.lengthscale) + keep * age).exp().matrix();
}

Eigen::VectorXd TimeVaryingGp::gradient(const Eigen::VectorXd& x, const Eigen::VectorXd& k,
                                        const Eigen::VectorXd& weights) const {
  Eigen::Index d = x.size() - 1;
  Eigen::VectorXd weighted = weights.cwiseProduct(k);
  return (inputs_.rightCols(d).transpose() * weighted - x.tail(d) * weighted.sum()) /
         (shape_.lengthscale * shape_.lengthscale);
}

TimeVaryingGp::Slope TimeVaryingGp::mean(const Eigen::VectorXd& x) const {
  Eigen::VectorXd k = covariance_with(x);
  return {k.dot(alpha_), gradient(x, k, alpha_)};
}

TimeVaryingGp::Slope TimeVaryingGp::variance(const Eigen::VectorXd& x) const {
  Eigen::VectorXd k = covariance_with(x);
  Eigen::VectorXd weights = cholesky_.solve(k);
  return {1 - k.dot(weights), -2 * gradient(x, k, weights)};
}

}  // namespace kolo::search

// A Gaussian process whose observations lose weight with time.
//
// Bogunovic et al., "Time-varying Gaussian process bandit optimization", AISTATS 2016. Kernel:
//   k(x, x') = exp(-|z - z'|² / (2 l²)) · (1 - epsilon)^(|t - t'| / 2),   x = (t, z),
// with variance 1, and noise of variance `noise` on the observations. Nothing is fitted.
//
// Cost: n³/3 to make, n per mean, n² per variance.
#pragma once

#include <Eigen/Cholesky>
#include <Eigen/Core>

namespace kolo::search {

class TimeVaryingGp {
 public:
  struct Shape {
    double lengthscale = 1;
    double epsilon = 0.1;
    double noise = 0.01;
  };
  /// A value and its derivatives by z.
  struct Slope {
    double value;
    Eigen::VectorXd gradient;
  };

  /// One row of `inputs` per observation: the time, then z.
  TimeVaryingGp(Eigen::MatrixXd inputs, const Eigen::VectorXd& outputs, Shape shape);

  [[nodiscard]] Slope mean(const Eigen::VectorXd& x) const;
  [[nodiscard]] Slope variance(const Eigen::VectorXd& x) const;

 private:
  [[nodiscard]] Eigen::VectorXd covariance_with(const Eigen::VectorXd& x) const;
  /// The derivative by z of weights · covariance_with(x).
  [[nodiscard]] Eigen::VectorXd gradient(const Eigen::VectorXd& x, const Eigen::VectorXd& k,
                                         const Eigen::VectorXd& weights) const;

  Eigen::MatrixXd inputs_;
  Shape shape_;
  Eigen::LLT<Eigen::MatrixXd> cholesky_;
  Eigen::VectorXd alpha_;  // (K + noise)^-1 y
};

}  // namespace kolo::search

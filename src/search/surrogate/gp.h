// Gaussian process regression with a Matérn 5/2 covariance, one length scale per input.
//
// Vocabulary: *inputs* are rows of the unit cube, *targets* are standardised values to be
// minimised, *parameters* are as in GpShape. `learn` finds parameters (costly, seldom); `condition`
// factors the covariance of all inputs under given parameters (n³/3); `append` adds one row (n²/2).
// A *pending* row is an input whose target is not known yet: it is believed to be what the mean
// says, which leaves the mean as it is and shrinks the variance around it (Ginsbourger, Le Riche
// and Carraro, "Kriging is well-suited to parallelize optimization", 2010).
//
// Every answer is a function of the calls made and their order, never of time or chance.
#pragma once

#include <Eigen/Core>

#include "search/surrogate/cholesky.h"
#include "search/surrogate/gp_parameters.h"

namespace kolo::search {

/// Improves `parameters` by maximum a posteriori and returns how bad they then are (the negative
/// logarithm of the posterior): less is better, for the same observations. Of more than `most`
/// observations a subset is used: the better half of `most`, and others at equal distances in the
/// order of the rows.
double learn_gp_parameters(const GpShape& shape, const Eigen::MatrixXd& inputs,
                           const Eigen::VectorXd& targets, Eigen::Index most, int evaluations,
                           Eigen::VectorXd& parameters);

class GaussianProcess {
 public:
  explicit GaussianProcess(GpShape shape) : shape_(std::move(shape)) {}

  [[nodiscard]] const GpShape& shape() const { return shape_; }
  [[nodiscard]] Eigen::Index size() const { return scaled_.rows(); }

  void condition(const Eigen::MatrixXd& inputs, const Eigen::VectorXd& parameters);
  void append(const Eigen::RowVectorXd& input);
  /// Targets of the first rows; all rows behind them are pending. n² multiply-adds.
  void set_targets(const Eigen::VectorXd& targets);
  void append_pending(const Eigen::RowVectorXd& input);
  /// Drops rows from the end, pending or not.
  void truncate(Eigen::Index size);

  struct Prediction {
    Eigen::VectorXd mean, variance;  // of the function without its noise
  };
  [[nodiscard]] Prediction predict(const Eigen::MatrixXd& inputs) const;
  /// Means alone are cheaper: no triangular solve.
  [[nodiscard]] Eigen::VectorXd predict_mean(const Eigen::MatrixXd& inputs) const;

  struct Slope {
    double mean, variance;
    Eigen::VectorXd mean_gradient, variance_gradient;
  };
  /// With derivatives by the columns of the input.
  [[nodiscard]] Slope predict_slope(const Eigen::RowVectorXd& input) const;

  [[nodiscard]] double noise() const { return noise_; }

 private:
  GpShape shape_;
  Eigen::VectorXd parameters_;
  Eigen::MatrixXd scaled_;
  CholeskyFactor factor_;
  Eigen::VectorXd alpha_;  // zero for pending rows
  double mean_ = 0.0, signal_ = 1.0, noise_ = 0.0, floor_ = 0.0;
};

}  // namespace kolo::search

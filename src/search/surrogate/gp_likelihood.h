// How well parameters of a Gaussian process explain observations: the negative logarithm of the
// marginal likelihood times the prior, with its analytic gradient.
//
// Rasmussen and Williams, "Gaussian processes for machine learning" (2006), equation 5.9: with
// α = K⁻¹ (y - m), the derivative by a parameter θ is -½ tr((α αᵀ - K⁻¹) ∂K/∂θ). For length scales
// and warps the trace is a sum over pairs of G_ij (z_i - z_j)(v_i - v_j), which expands into
// products with G: one n x n x columns product serves all inputs, however many there are. The mean
// m is not a parameter: it takes its best value under a standard normal prior.
//
// Cost of one evaluation: about n³ multiply-adds.
#pragma once

#include <Eigen/Core>

#include "search/surrogate/gp_parameters.h"

namespace kolo::search {

class GpLikelihood {
 public:
  /// Keeps references: shape, prior, inputs (rows of the unit cube) and targets must outlive it.
  GpLikelihood(const GpShape& shape, const GpPrior& prior, const Eigen::MatrixXd& inputs,
               const Eigen::VectorXd& targets)
      : shape_(shape), prior_(prior), inputs_(inputs), targets_(targets) {}

  double operator()(const Eigen::VectorXd& parameters, Eigen::VectorXd& gradient) const;

 private:
  const GpShape& shape_;
  const GpPrior& prior_;
  const Eigen::MatrixXd& inputs_;
  const Eigen::VectorXd& targets_;
};

}  // namespace kolo::search

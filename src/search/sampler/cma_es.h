// The distribution that CMA-ES moves: mean, step size and covariance in the unit cube.
//
// Hansen, "The CMA evolution strategy: a tutorial" (2016), with the default weights and rates,
// active (negative) weights included. The covariance is decomposed only after enough updates that
// it could have changed noticeably, so that sampling and updating cost O(d²).
//
// Integers: Hamano et al., "CMA-ES with margin: lower-bounding marginal probability for
// mixed-integer black-box optimization" (2022). Each discrete coordinate keeps at least the
// probability α of leaving the cell of its mean: where the distribution has become narrower than a
// cell, a diagonal factor A widens that coordinate (and the mean is corrected where it sits near an
// edge).
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <vector>

#include "kolo/random.h"

namespace kolo::search {

class CmaDistribution {
 public:
  /// `cells` holds, per coordinate, the number of equal cells of [0, 1] that decode to different
  /// values; 0 for a continuum.
  CmaDistribution(std::vector<std::uint64_t> cells, Eigen::VectorXd mean, double sigma,
                  std::size_t population);

  /// Not clamped to the cube.
  [[nodiscard]] Eigen::VectorXd sample(Random& random) const;

  /// One generation: `population` solutions, best first.
  void update(const std::vector<Eigen::VectorXd>& sorted);

  [[nodiscard]] std::size_t population() const { return population_; }
  [[nodiscard]] const Eigen::VectorXd& mean() const { return mean_; }
  [[nodiscard]] double sigma() const { return sigma_; }
  /// The largest deviation of any coordinate.
  [[nodiscard]] double largest_deviation() const;
  /// Whether nothing more can come of it: too narrow to move, or numerically at its end.
  [[nodiscard]] bool collapsed() const;

 private:
  void decompose();
  void keep_margin();

  // Constants of the strategy.
  std::size_t population_;
  Eigen::VectorXd weights_;  // of ranks; the negative ones last
  std::size_t parents_;      // ranks with positive weights
  double mu_eff_, c_sigma_, d_sigma_, c_c_, c_1_, c_mu_, chi_;
  std::vector<std::uint64_t> cells_;
  double alpha_;  // margin

  // State.
  Eigen::VectorXd mean_;
  double sigma_;
  Eigen::MatrixXd covariance_, axes_;  // axes_ = B D, columns scaled by the roots of eigenvalues
  Eigen::MatrixXd whitening_;          // C^(-1/2)
  Eigen::VectorXd path_sigma_, path_c_, widening_;  // widening_ = diagonal of A
  double condition_ = 1.0;
  std::uint64_t generation_ = 0, decomposed_ = 0;
};

}  // namespace kolo::search

// A quadratic through points that lie about a minimum: where that minimum is.
//
// Hansen, "A global surrogate assisted CMA-ES" (GECCO 2019), fits the like by least squares with
// weights that fall with the rank of a value. Here the values are first raised to a power (their
// distance to the least one, to the 1/2, 1 or 2; whichever a quadratic explains best): a cone,
// whose tip no quadratic finds, becomes a bowl, and so does a flat quartic bottom.
//
// n points of d numbers, q = 1 + d + d(d+1)/2 coefficients: n·q² + q³ to fit. Above kMostCrossed
// numbers the products of two different ones are left out, q = 1 + 2d.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <optional>

namespace kolo::search {

class Quadratic {
 public:
  static constexpr Eigen::Index kMostCrossed = 12;

  /// Coefficients of a quadratic of so many numbers.
  [[nodiscard]] static std::size_t coefficients(std::size_t numbers);

  /// `points`: a row each, about as far from the origin in every direction, in the order of their
  /// `values`, least first. None if they are too few or say nothing.
  static std::optional<Quadratic> fit(const Eigen::MatrixXd& points, const Eigen::VectorXd& values);

  /// Share of the (weighted) variance of the values that is not explained.
  [[nodiscard]] double unexplained() const { return unexplained_; }

  /// Its least point among those at most `reach` from the origin along each of its axes.
  [[nodiscard]] Eigen::VectorXd minimum(double reach) const;

 private:
  Quadratic() = default;
  Eigen::VectorXd slope_;
  Eigen::MatrixXd curvature_;
  double unexplained_ = 1.0;
};

}  // namespace kolo::search

// Steps whose lengths and directions are those in which good points differ.
//
// An evolution strategy samples from the covariance of its best points (Larrañaga and Lozano,
// "Estimation of distribution algorithms", 2002; in CMA-ES it is adapted over time): as they draw
// together the steps become shorter, at the rate at which the search has earned it, and along a
// valley they stay long. Steps of fixed lengths find nothing new once the best points lie closer
// than the shortest; how soon that is depends on how many trials a generation has.
//
// A normal vector with the covariance of n points is Σ gₖ·(xₖ − mean)/√n with normal gₖ: no matrix
// is built or factored, and a step costs n·d.
#pragma once

#include <Eigen/Core>
#include <span>
#include <vector>

#include "search/acquisition/moves.h"

namespace kolo::search {

class EliteSteps {
 public:
  /// Keeps a reference to `moves` only.
  EliteSteps(const Moves& moves, std::span<const Point> elite);

  /// Whether there are numbers that vary among the elite.
  [[nodiscard]] bool any() const { return any_; }

  /// A point near `from`: its active numbers move by a normal step with `scale`² times the
  /// covariance of the elite, in units of the prior's range, and its choices seldom become those of
  /// one of the elite. `from_mean`: numbers start from the mean of the elite instead.
  [[nodiscard]] Point vary(const Point& from, double scale, bool from_mean, Random& random) const;

 private:
  const Moves& moves_;
  std::vector<Point> elite_;
  std::vector<double> mean_;    // of each number on the unit interval; NaN: never active
  Eigen::MatrixXd deviations_;  // a row per number, a column per point, divided by √n
  bool any_ = false;
};

}  // namespace kolo::search

// Minimisation of a smooth function in a box by limited-memory BFGS.
//
// Liu and Nocedal, "On the limited memory BFGS method for large scale optimization" (1989), with
// the two-metric projection of Bertsekas (1982) for the bounds: variables that sit on a bound and
// would leave it are held, the quasi-Newton step is taken in the others, and the line search
// follows the projection of the step onto the box. Small, deterministic and with a fixed limit of
// evaluations, which is what a model that is refitted thousands of times needs.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace kolo::search {

/// Returns the value at x and writes the gradient there. A value that is not finite is a wall.
using SmoothFunction = std::function<double(const Eigen::VectorXd& x, Eigen::VectorXd& gradient)>;

struct LbfgsLimits {
  int evaluations = 40;
  double gradient = 1e-4;  // stop when the largest free component is below
  double decrease = 1e-7;  // stop when a step gains less than this, relative to the value
};

/// Improves x in place, which must lie in the box, and returns the value there.
double minimise_lbfgs(const SmoothFunction& function, Eigen::VectorXd& x,
                      const Eigen::VectorXd& low, const Eigen::VectorXd& high,
                      const LbfgsLimits& limits);

}  // namespace kolo::search

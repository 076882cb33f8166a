// An iteration: find the variables that are held at a bound, compute the quasi-Newton direction of
// the others from the last eight corrections (two-loop recursion), and search along its projection
// onto the box with Armijo's rule and parabolic steps. A correction without positive curvature is
// dropped.
#include "search/surrogate/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <deque>

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t kMemory = 8;

struct Correction {
  VectorXd step, change;  // of x and of the gradient
  double curvature;       // their inner product, positive
};

/// The free variables: 1, and 0 for those held at a bound.
VectorXd free_mask(const VectorXd& x, const VectorXd& gradient, const VectorXd& low,
                   const VectorXd& high) {
  VectorXd mask(x.size());
  for (Index i = 0; i < x.size(); ++i)
    mask[i] = (x[i] <= low[i] && gradient[i] > 0) || (x[i] >= high[i] && gradient[i] < 0) ? 0 : 1;
  return mask;
}

/// -H g by the two-loop recursion, within the free variables.
VectorXd direction_of(const std::deque<Correction>& memory, const VectorXd& gradient,
                      const VectorXd& mask) {
  VectorXd q = -gradient.cwiseProduct(mask);
  std::vector<double> weights(memory.size());
  for (std::size_t i = memory.size(); i-- > 0;) {
    weights[i] = memory[i].step.dot(q) / memory[i].curvature;
    q -= weights[i] * memory[i].change;
  }
  if (!memory.empty()) q *= memory.back().curvature / memory.back().change.squaredNorm();
  for (std::size_t i = 0; i < memory.size(); ++i)
    q += (weights[i] - memory[i].change.dot(q) / memory[i].curvature) * memory[i].step;
  return q.cwiseProduct(mask);
}

}  // namespace

double minimise_lbfgs(const SmoothFunction& function, VectorXd& x, const VectorXd& low,
                      const VectorXd& high, const LbfgsLimits& limits) {
  VectorXd gradient(x.size());
  double value = function(x, gradient);
  int evaluations = 1;
  std::deque<Correction> memory;
  VectorXd trial(x.size()), trial_gradient(x.size());
  while (evaluations < limits.evaluations) {
    const VectorXd mask = free_mask(x, gradient, low, high);
    const double steepest = gradient.cwiseProduct(mask).cwiseAbs().maxCoeff();
    if (!(steepest > limits.gradient)) break;
    VectorXd direction = direction_of(memory, gradient, mask);
    if (!(direction.dot(gradient) < 0.0)) {
      memory.clear();
      direction = -gradient.cwiseProduct(mask);
    }
    // Without curvature the gradient's length says nothing: begin with a tenth of the box.
    double length = 1.0;
    if (memory.empty()) length = 0.1 * (high - low).maxCoeff() / direction.cwiseAbs().maxCoeff();
    bool accepted = false;
    double trial_value = value;
    while (evaluations < limits.evaluations) {
      trial = (x + length * direction).cwiseMax(low).cwiseMin(high);
      trial_value = function(trial, trial_gradient);
      ++evaluations;
      const double slope = gradient.dot(trial - x);
      if (std::isfinite(trial_value) && trial_value <= value + 1e-4 * slope) {
        accepted = true;
        break;
      }
      // The minimum of the parabola through what is known, within safe limits.
      const double parabola =
          std::isfinite(trial_value) ? -0.5 * slope / (trial_value - value - slope) : 0.1;
      length *= std::clamp(parabola, 0.1, 0.5);
      if (length * direction.cwiseAbs().maxCoeff() < 1e-12) break;
    }
    if (!accepted) break;
    Correction correction{trial - x, trial_gradient - gradient, 0.0};
    correction.curvature = correction.step.dot(correction.change);
    const double gain = value - trial_value;
    x = trial;
    gradient = trial_gradient;
    value = trial_value;
    if (correction.curvature > 1e-10 * correction.step.norm() * correction.change.norm()) {
      memory.push_back(std::move(correction));
      if (memory.size() > kMemory) memory.pop_front();
    }
    if (gain <= limits.decrease * (1.0 + std::abs(value))) break;
  }
  return value;
}

}  // namespace kolo::search

// How promising a point is, from a model's mean and deviation there. Values are minimised; larger
// scores are better.
//
//   EI      expected improvement over the best value (Jones, Schonlau and Welch, 1998)
//   logEI   its logarithm, computed so that it neither underflows nor loses its slope far from any
//           improvement (Ament et al., "Unexpected improvements to expected improvement", 2023)
//   PI      probability of an improvement
//   UCB     optimistic value, κ deviations better than the mean (Srinivas et al., 2010)
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kolo::search {

struct Acquisition {
  enum class Kind { log_ei, ei, pi, ucb };

  Kind kind = Kind::log_ei;
  double best = 0.0;    // for EI, logEI and PI
  double kappa = 1.96;  // for UCB
  double xi = 0.0;      // how much better than `best` an improvement must be

  struct Slope {
    double score, by_mean, by_deviation;
  };
  [[nodiscard]] Slope slope(double mean, double deviation) const;
  [[nodiscard]] double score(double mean, double deviation) const {
    return slope(mean, deviation).score;
  }
};

/// How κ (or ξ) changes from one model-based trial to the next (DeepHyper's names).
struct ExplorationSchedule {
  enum class Kind { constant, periodic_exp_decay, bandit };

  Kind kind = Kind::periodic_exp_decay;
  double initial = 1.96, final = 0.01;
  double period = 10.0;
  double delta = 0.05, lambda = 0.2;  // of bandit

  /// `step` counts model-based trials from 0; `dimensions` is the number of parameters.
  [[nodiscard]] double at(std::uint64_t step, std::uint64_t dimensions) const;
};

}  // namespace kolo::search

// targets() turns outcomes into one number each. Several objectives are scaled to 0 … 1 and
// combined by the augmented Chebyshev function (the worst weighted objective plus a little of their
// sum). Infeasible trials are placed above all feasible ones, by how much they violate; failed
// trials have no number.
#include "search/sampler/observations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kolo::search {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// Each objective of the trials that have values, scaled to 0 … 1; of far outliers, to more than 1.
struct Scaling {
  std::vector<double> low, range;

  Scaling(std::span<const Trial> trials, std::span<const std::size_t> places,
          std::size_t objectives)
      : low(objectives, 0.0), range(objectives, 1.0) {
    for (std::size_t j = 0; j < objectives; ++j) {
      std::vector<double> values;
      for (const std::size_t place : places)
        if (!trials[place].values.empty()) values.push_back(trials[place].values[j]);
      if (values.empty()) continue;
      std::sort(values.begin(), values.end());
      low[j] = values.front();
      const double most =
          values[(values.size() - 1) * 9 / 10];  // a bad tail shall not set the scale
      if (most > low[j]) range[j] = most - low[j];
    }
  }

  [[nodiscard]] double scalar(const Trial& trial, std::span<const double> weights) const {
    double worst = -std::numeric_limits<double>::infinity(), sum = 0.0;
    for (std::size_t j = 0; j < low.size(); ++j) {
      const double part = weights[j] * (trial.values[j] - low[j]) / range[j];
      worst = std::max(worst, part);
      sum += part;
    }
    return worst + 0.05 * sum;
  }
};

}  // namespace

void Observations::ended(const Trial& trial, std::size_t place) {
  places_.push_back(place);
  if (!trial.id) started(trial);  // from elsewhere: never started here
}

Eigen::VectorXd Observations::targets(std::span<const Trial> trials, std::size_t count,
                                      std::span<const double> weights) const {
  const std::span<const std::size_t> places(places_.data(), count);
  Eigen::VectorXd targets(static_cast<Eigen::Index>(count));
  const std::size_t objectives = weights.size();
  const Scaling scaling(trials, objectives > 1 ? places : places.first(0), objectives);
  double low = std::numeric_limits<double>::infinity(), high = -low, most_violated = 0.0;
  for (std::size_t i = 0; i < count; ++i) {
    const Trial& trial = trials[places[i]];
    double& target = targets[static_cast<Eigen::Index>(i)];
    if (trial.values.empty()) {
      target = kNone;
      continue;
    }
    target = objectives == 1 ? trial.values[0] : scaling.scalar(trial, weights);
    if (trial.violation > 0.0) {
      if (std::isfinite(trial.violation)) most_violated = std::max(most_violated, trial.violation);
    } else {
      low = std::min(low, target);
      high = std::max(high, target);
    }
  }
  const bool any_feasible = low <= high;
  const double range = any_feasible ? (high > low ? high - low : 1.0 + std::abs(low)) : 1.0;
  for (std::size_t i = 0; i < count; ++i) {
    const Trial& trial = trials[places[i]];
    if (trial.values.empty() || trial.violation <= 0.0) continue;
    const double share = most_violated > 0.0 ? std::min(trial.violation / most_violated, 1.5) : 1.5;
    targets[static_cast<Eigen::Index>(i)] = (any_feasible ? high : 0.0) + range * (0.1 + share);
  }
  return targets;
}

std::vector<double> draw_weights(std::size_t objectives, Random& random) {
  std::vector<double> weights(objectives, 1.0);
  if (objectives == 1) return weights;
  double sum = 0.0;
  for (double& weight : weights) sum += weight = -std::log(1.0 - random.uniform());
  for (double& weight : weights) weight /= sum;
  return weights;
}

std::vector<double> even_weights(std::size_t objectives) {
  return std::vector<double>(objectives, 1.0 / static_cast<double>(objectives));
}

}  // namespace kolo::search

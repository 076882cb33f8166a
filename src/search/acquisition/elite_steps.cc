#include "search/acquisition/elite_steps.h"

#include <cmath>
#include <limits>

namespace kolo::search {

using Eigen::Index;

EliteSteps::EliteSteps(const Moves& moves, std::span<const Point> elite)
    : moves_(moves), elite_(elite.begin(), elite.end()) {
  const Encoder& encoder = moves.encoder();
  const std::size_t parameters = encoder.space().size();
  mean_.assign(parameters, std::numeric_limits<double>::quiet_NaN());
  deviations_.setZero(static_cast<Index>(parameters), static_cast<Index>(elite.size()));
  for (std::size_t i = 0; i < parameters; ++i) {
    if (encoder.space().parameters()[i].kind == Parameter::Kind::categorical) continue;
    double sum = 0.0;
    std::size_t active = 0;
    for (const Point& point : elite) {
      if (std::isnan(point[i])) continue;
      sum += encoder.to_unit(i, point[i]);
      ++active;
    }
    if (active == 0) continue;
    mean_[i] = sum / static_cast<double>(active);
    for (std::size_t k = 0; k < elite.size(); ++k) {
      if (std::isnan(elite[k][i])) continue;
      const double off = encoder.to_unit(i, elite[k][i]) - mean_[i];
      deviations_(static_cast<Index>(i), static_cast<Index>(k)) =
          off / std::sqrt(static_cast<double>(active));
      any_ = any_ || off != 0.0;
    }
  }
}

Point EliteSteps::vary(const Point& from, double scale, bool from_mean, Random& random) const {
  const Encoder& encoder = moves_.encoder();
  const Space& space = encoder.space();
  Eigen::VectorXd normal(deviations_.cols());
  for (double& entry : normal) entry = random.normal();
  const Eigen::VectorXd step = scale * (deviations_ * normal);
  Point point = from;
  const double seldom = 0.5 / static_cast<double>(point.size());
  for (std::size_t i = 0; i < point.size(); ++i) {
    if (std::isnan(from[i])) continue;
    if (space.parameters()[i].kind == Parameter::Kind::categorical) {
      if (random.uniform() >= seldom) continue;
      const double other = elite_[random.below(elite_.size())][i];
      if (!std::isnan(other)) point[i] = other;
    } else if (!std::isnan(mean_[i])) {
      const double start = from_mean ? mean_[i] : encoder.to_unit(i, from[i]);
      point[i] = encoder.from_unit(i, reflect_into_unit(start + step[static_cast<Index>(i)]));
    }
  }
  return space.settle(point, random) ? point : moves_.vary(from, scale, random);
}

}  // namespace kolo::search

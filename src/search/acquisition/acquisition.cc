#include "search/acquisition/acquisition.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "search/space/encoder.h"
#include "search/surrogate/normal.h"

namespace kolo::search {
namespace {

/// (φ(z) + z Φ(z)) / φ(z), the improvement in units of the density.
double improvement_ratio(double z) {
  if (z > -10.0) return 1.0 + z * mills_ratio(z);
  const double s = 1.0 / (z * z);  // the ones cancel: series of what is left
  return s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s * (1.0 - 9.0 * s))));
}

}  // namespace

Acquisition::Slope Acquisition::slope(double mean, double deviation) const {
  if (kind == Kind::ucb) return {kappa * deviation - mean, -1.0, kappa};
  const double z = (best - xi - mean) / deviation;
  if (kind == Kind::pi) {
    const double density = normal_density(z);
    return {normal_cdf(z), -density / deviation, -density * z / deviation};
  }
  if (kind == Kind::ei) {
    const double density = normal_density(z), below = normal_cdf(z);
    return {deviation * (density + z * below), -below, density};
  }
  // log EI = log σ + log h(z), h = φ + zΦ, h' = Φ. Far above zero h is z itself.
  double log_h = 0.0, log_h_slope = 0.0;
  if (z > 8.0) {
    log_h = std::log(z);
    log_h_slope = 1.0 / z;
  } else {
    const double ratio = improvement_ratio(z);
    log_h = -0.5 * z * z - 0.5 * std::log(2.0 * std::numbers::pi) + std::log(ratio);
    log_h_slope = mills_ratio(z) / ratio;
  }
  return {std::log(deviation) + log_h, -log_h_slope / deviation,
          (1.0 - log_h_slope * z) / deviation};
}

double ExplorationSchedule::at(std::uint64_t step, std::uint64_t dimensions) const {
  switch (kind) {
    case Kind::constant: break;
    case Kind::periodic_exp_decay: {
      const double rate = -std::log(final / initial) / period;
      return initial * std::exp(-rate * std::fmod(static_cast<double>(step), period));
    }
    case Kind::bandit: {
      const double i = static_cast<double>(step + 1), d = static_cast<double>(dimensions);
      const double pi_squared = std::numbers::pi * std::numbers::pi;
      return std::sqrt(
          std::max(0.0, 2.0 * std::log(d * i * i * pi_squared / (6.0 * delta)) * lambda));
    }
  }
  return initial;
}

}  // namespace kolo::search

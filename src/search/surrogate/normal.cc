#include "search/surrogate/normal.h"

#include <cmath>
#include <numbers>

#include "search/space/encoder.h"

namespace kolo::search {

double normal_density(double z) {
  return std::exp(-0.5 * z * z) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

double mills_ratio(double z) {
  if (z > -20.0) return normal_cdf(z) / normal_density(z);
  // Asymptotic series; the first term left out is below 1e-12.
  const double s = 1.0 / (z * z);
  return -(1.0 - s * (1.0 - 3.0 * s * (1.0 - 5.0 * s * (1.0 - 7.0 * s)))) / z;
}

}  // namespace kolo::search

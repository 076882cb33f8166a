#include <limits>

#include "base/errors.h"
#include "kolo/torch/noise_scale.h"

namespace kolo {

NoiseScaleEstimate::NoiseScaleEstimate(double memory) : keep_(1 - 1 / memory) {
  if (!(memory >= 1))
    throw_error(ErrorCode::invalid_argument,
                "noise scale: the memory is {} steps, but must be at least 1", memory);
}

void NoiseScaleEstimate::add(double small_batch, double big_batch, double small_squared,
                             double big_squared) {
  if (!(small_batch > 0 && big_batch > small_batch))
    throw_error(
        ErrorCode::invalid_argument,
        "noise scale: batches of {} and {} samples cannot be compared; the second must be larger",
        small_batch, big_batch);
  const double variance = (small_squared - big_squared) / (1 / small_batch - 1 / big_batch);
  const double squared_gradient =
      (big_batch * big_squared - small_batch * small_squared) / (big_batch - small_batch);
  variance_ = keep_ * variance_ + (1 - keep_) * variance;
  squared_gradient_ = keep_ * squared_gradient_ + (1 - keep_) * squared_gradient;
  weight_ = keep_ * weight_ + (1 - keep_);
  ++steps_;
}

double NoiseScaleEstimate::variance() const noexcept {
  return steps_ == 0 ? 0 : variance_ / weight_;
}
double NoiseScaleEstimate::squared_gradient() const noexcept {
  return steps_ == 0 ? 0 : squared_gradient_ / weight_;
}
double NoiseScaleEstimate::value() const noexcept {
  if (!(squared_gradient() > 0)) return std::numeric_limits<double>::quiet_NaN();
  return variance() / squared_gradient();
}

}  // namespace kolo

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "kolo/torch/schedule.h"

namespace kolo {
namespace {

/// The multiple of `unit` nearest to `batch`, within least…most rounded inward.
std::size_t nearest_multiple(double batch, std::size_t unit, std::size_t least, std::size_t most) {
  if (unit == 0 || most < unit || least > most)
    throw_error(ErrorCode::invalid_argument, "batch size: no multiple of {} lies between {} and {}",
                unit, least, most);
  const auto step = static_cast<double>(unit);
  const double low = std::ceil(std::max<double>(1, static_cast<double>(least)) / step);
  const double high = std::floor(static_cast<double>(most) / step);
  return static_cast<std::size_t>(std::clamp(std::round(batch / step), std::min(low, high), high)) *
         unit;
}

}  // namespace

ScaledTraining scale_linearly(RateAndBatch one_rank, int ranks, LinearScaling rule,
                              std::size_t steps_per_update) {
  if (ranks < 1 || steps_per_update < 1 || one_rank.batch < 1 || !(one_rank.rate >= 0))
    throw_error(ErrorCode::invalid_argument,
                "scale_linearly: rate {}, batch {}, {} ranks and {} passes per update: the rate "
                "cannot be negative, and the others must be at least 1",
                one_rank.rate, one_rank.batch, ranks, steps_per_update);
  const std::size_t parts = static_cast<std::size_t>(ranks) * steps_per_update;
  ScaledTraining scaled;
  scaled.rate = rule.rate ? one_rank.rate * static_cast<double>(parts) : one_rank.rate;
  scaled.global_batch = rule.batch ? one_rank.batch * parts : one_rank.batch;
  if (scaled.global_batch % parts != 0)
    throw_error(
        ErrorCode::invalid_argument,
        "scale_linearly: {} samples per step cannot be divided among {} ranks with {} passes each",
        scaled.global_batch, ranks, steps_per_update);
  scaled.batch_per_rank = scaled.global_batch / parts;
  return scaled;
}

std::size_t batch_at(const BatchGrowth& growth, double epoch) {
  if (!(growth.factor > 0))
    throw_error(ErrorCode::invalid_argument, "batch_at: the factor is {}, but must be positive",
                growth.factor);
  const auto passed = std::count_if(growth.milestones.begin(), growth.milestones.end(),
                                    [&](double milestone) { return epoch >= milestone; });
  const double batch =
      static_cast<double>(growth.first) * std::pow(growth.factor, static_cast<double>(passed));
  return nearest_multiple(batch, growth.multiple_of, 1, growth.most);
}

std::size_t next_batch(const BatchFollowsNoise& rule, std::size_t batch, double noise_scale) {
  const auto now = static_cast<double>(batch);
  // An estimate can come out negative or infinite while there is little to estimate it from.
  const double wanted = std::isfinite(noise_scale) ? noise_scale : now;
  const std::size_t next = nearest_multiple(std::clamp(wanted, now, now * rule.fastest),
                                            rule.multiple_of, rule.least, rule.most);
  return std::max(next, std::min(batch, rule.most));
}

}  // namespace kolo

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/errors.h"
#include "kolo/torch/schedule.h"

namespace kolo::schedule {
namespace {

void check_rate(const char* name, double rate) {
  if (!(rate >= 0) || !std::isfinite(rate))
    throw_error(ErrorCode::invalid_argument,
                "schedule: {} = {} is not a learning rate; it must be finite and not negative",
                name, rate);
}
void check_length(double epochs) {
  if (!(epochs >= 0) || !std::isfinite(epochs))
    throw_error(ErrorCode::invalid_argument,
                "schedule: the length is {} epochs, but must be finite and not negative", epochs);
}

/// How much of `epochs` is over, in 0…1.
double progress(double epoch, double epochs) {
  return epochs == 0 ? 1.0 : std::clamp(epoch / epochs, 0.0, 1.0);
}

}  // namespace

Rate constant(double rate) {
  check_rate("rate", rate);
  return [rate](double) { return rate; };
}

Rate multi_step(double rate, std::vector<double> milestones, double gamma) {
  check_rate("rate", rate);
  check_rate("gamma", gamma);
  std::sort(milestones.begin(), milestones.end());
  return [rate, milestones = std::move(milestones), gamma](double epoch) {
    const auto passed = std::upper_bound(milestones.begin(), milestones.end(), epoch);
    return rate * std::pow(gamma, static_cast<double>(passed - milestones.begin()));
  };
}

Rate polynomial(double rate, double epochs, double power, double end) {
  check_rate("rate", rate);
  check_rate("power", power);
  check_rate("end", end);
  check_length(epochs);
  return [=](double epoch) {
    return end + (rate - end) * std::pow(1.0 - progress(epoch, epochs), power);
  };
}

Rate cosine(double rate, double epochs, double end) {
  check_rate("rate", rate);
  check_rate("end", end);
  check_length(epochs);
  return [=](double epoch) {
    return end + (rate - end) * 0.5 * (1.0 + std::cos(std::numbers::pi * progress(epoch, epochs)));
  };
}

Rate exponential(double rate, double gamma) {
  check_rate("rate", rate);
  check_rate("gamma", gamma);
  return [=](double epoch) { return rate * std::pow(gamma, epoch); };
}

Rate staircase(Rate rate) {
  return [rate = std::move(rate)](double epoch) { return rate(std::floor(epoch)); };
}

Rate warmup(WarmupOptions options, Rate after, bool shift) {
  check_rate("start", options.start);
  check_length(options.epochs);
  const double peak = after(shift ? 0.0 : options.epochs);
  return [options, after = std::move(after), shift, peak](double epoch) {
    if (epoch >= options.epochs) return after(shift ? epoch - options.epochs : epoch);
    return options.start + (peak - options.start) * progress(epoch, options.epochs);
  };
}

Rate horovod_warmup(double peak, int ranks, double epochs, Rate after) {
  check_rate("peak", peak);
  check_length(epochs);
  if (ranks < 1)
    throw_error(ErrorCode::invalid_argument,
                "horovod_warmup: the number of ranks is {}, but must be at least 1", ranks);
  return [=, after = std::move(after)](double epoch) {
    if (epoch >= epochs) return after(epoch);
    return peak / ranks * (epoch * (ranks - 1) / epochs + 1);
  };
}

}  // namespace kolo::schedule

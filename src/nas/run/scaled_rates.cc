#include "nas/run/scaled_rates.h"

namespace kolo::nas {

ScaledRates scaled_rates(const TrainingSettings& settings, int ranks,
                         const ScalingDefaults& defaults) {
  const LinearScaling rule{.rate = settings.lsr_learning_rate.value_or(defaults.rate),
                           .batch = settings.lsr_batch_size.value_or(defaults.batch)};
  auto batch = static_cast<std::size_t>(settings.batch_size);
  const auto parts = static_cast<std::size_t>(ranks);
  if (!rule.batch) batch = (batch + parts - 1) / parts * parts;
  const ScaledTraining scaled =
      scale_linearly({.rate = settings.learning_rate, .batch = batch}, ranks, rule);

  ScaledRates rates;
  rates.global_batch = scaled.global_batch;
  rates.batch_per_rank = scaled.batch_per_rank;
  rates.peak_rate = scaled.rate;
  rates.rate = schedule::constant(scaled.rate);
  const bool warms_up = settings.warmup_lr.value_or(defaults.warmup) && settings.warmup_epochs > 0;
  if (warms_up)
    rates.rate = schedule::warmup(
        {.start = settings.learning_rate, .epochs = settings.warmup_epochs}, rates.rate);
  rates.first_rate = rates.rate(0);
  return rates;
}

}  // namespace kolo::nas

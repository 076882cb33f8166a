// The linear scaling rule of an evaluation, and the rate of every step.
//
// With n ranks: n·b samples a step (lsr_batch_size) and rate n·lr (lsr_learning_rate), to which the
// rate grows linearly from lr in warmup_epochs (warmup_lr): Goyal et al., "Accurate, large
// minibatch SGD", 2017. The reference's own warm-up ends at lr, because it multiplies the rate that
// was not scaled; this one ends at n·lr.
#pragma once

#include <cstddef>

#include "kolo/torch/schedule.h"
#include "nas/problem/hyperparameters.h"

namespace kolo::nas {

/// What a run function does where the hyperparameters say nothing.
struct ScalingDefaults {
  bool batch = false, rate = false, warmup = false;
};

struct ScaledRates {
  std::size_t global_batch = 0, batch_per_rank = 0;
  double first_rate = 0;  ///< of the first step
  double peak_rate = 0;   ///< the scaled one
  schedule::Rate rate;    ///< by epoch, with a fraction
};

/// A batch that is not scaled and does not divide among the ranks is rounded up.
ScaledRates scaled_rates(const TrainingSettings& settings, int ranks,
                         const ScalingDefaults& defaults);

}  // namespace kolo::nas

// Learning rates: how they grow with the number of ranks and change with time.
//
// A schedule is a function from the epoch (with a fraction: 2.5 is the middle of the third) to the
// rate. They nest:
//
//   auto scaling = kolo::scale_linearly({.rate = 0.1, .batch = 32}, kolo::size());
//   auto rate = kolo::schedule::warmup({.start = 0.1, .epochs = 5},
//                                      kolo::schedule::cosine(scaling.rate, 90));
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace kolo {

// --- the linear scaling rule ---------------------------------------------------------------------

struct RateAndBatch {
  double rate = 0;        ///< learning rate
  std::size_t batch = 0;  ///< samples a step, of all ranks together
};

struct LinearScaling {
  bool rate = true;   ///< n ranks: n times the rate
  bool batch = true;  ///< n ranks: n times the samples a step; false: every rank takes an n-th
};

struct ScaledTraining {
  double rate = 0;
  std::size_t global_batch = 0;
  std::size_t batch_per_rank = 0;
};

/// What one rank would use, for `ranks` ranks (Goyal et al., "Accurate, large minibatch SGD", 2017:
/// with n times the samples a step, n times the rate). `steps_per_update` counts accumulated
/// backward passes, which enlarge the batch likewise. Throws invalid_argument when a rank would
/// have no sample, or when the batch does not divide evenly.
[[nodiscard]] ScaledTraining scale_linearly(RateAndBatch one_rank, int ranks,
                                            LinearScaling rule = {},
                                            std::size_t steps_per_update = 1);

// --- schedules -----------------------------------------------------------------------------------

namespace schedule {

using Rate = std::function<double(double epoch)>;

/// All throw invalid_argument for rates or lengths below zero or not finite.
[[nodiscard]] Rate constant(double rate);
/// rate · gamma^(number of milestones passed).
[[nodiscard]] Rate multi_step(double rate, std::vector<double> milestones, double gamma = 0.1);
/// From `rate` to `end` in `epochs`: end + (rate - end) · (1 - t)^power.
[[nodiscard]] Rate polynomial(double rate, double epochs, double power = 1.0, double end = 0.0);
/// From `rate` to `end` along half a cosine (Loshchilov and Hutter, 2016), and stays there.
[[nodiscard]] Rate cosine(double rate, double epochs, double end = 0.0);
/// rate · gamma^epoch.
[[nodiscard]] Rate exponential(double rate, double gamma);
/// The rate of the epoch's beginning for all of it.
[[nodiscard]] Rate staircase(Rate rate);

struct WarmupOptions {
  double start = 0;   ///< the first rate
  double epochs = 5;  ///< length; 0: none
};
/// Linearly from `start` to what `after` begins with, then `after`, whose epoch 0 is the end of the
/// warm-up when `shift`, else the beginning of training (as in the papers).
[[nodiscard]] Rate warmup(WarmupOptions options, Rate after, bool shift = false);
/// Horovod's: from peak / ranks to `peak`, the rate that was already scaled:
/// rate(e) = peak/n · (e·(n - 1)/epochs + 1).
[[nodiscard]] Rate horovod_warmup(double peak, int ranks, double epochs, Rate after);

}  // namespace schedule

// --- batch sizes ---------------------------------------------------------------------------------

/// Larger batches instead of smaller rates (Smith et al., "Don't decay the learning rate, increase
/// the batch size", 2017).
struct BatchGrowth {
  std::size_t first = 32;          ///< samples a step, of all ranks
  double factor = 2;               ///< at each milestone
  std::vector<double> milestones;  ///< epochs
  std::size_t most = 1 << 16;
  std::size_t multiple_of = 1;  ///< ranks, say: the result is a multiple of it
};
[[nodiscard]] std::size_t batch_at(const BatchGrowth& growth, double epoch);

/// Follows the gradient noise scale (noise_scale.h): about as many samples a step as are useful,
/// never shrinking and never more than `fastest` times as many as before.
struct BatchFollowsNoise {
  std::size_t least = 32, most = 1 << 16;
  double fastest = 2;
  std::size_t multiple_of = 1;
};
[[nodiscard]] std::size_t next_batch(const BatchFollowsNoise& rule, std::size_t batch,
                                     double noise_scale);

}  // namespace kolo

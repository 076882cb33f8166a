// Sets the learning rate of an optimizer from a schedule, step by step.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kolo/torch/schedule.h"

namespace kolo {

struct RateSchedulerOptions {
  std::size_t steps_per_epoch = 1;
  /// In the step where the rate changes, momentum is multiplied by new/old rate, so that what was
  /// accumulated at the old rate weighs as it did (Goyal et al. 2017, section 2.3).
  bool momentum_correction = true;
  /// Step b (0, 1, …) of an epoch is at epoch + (b + 1)/steps, as Horovod's warm-up counts, instead
  /// of epoch + b/steps.
  bool count_from_one = false;
};

/// The optimizer must outlive it. Groups of parameters keep the ratio of their rates. Not
/// thread-safe.
class RateScheduler {
 public:
  RateScheduler(torch::optim::Optimizer& optimizer, schedule::Rate rate,
                RateSchedulerOptions options);

  /// Sets the rate for the optimizer step to come; call it once before each.
  void step();

  /// The rate that step() last set (before: that of the first step), and how often it was called.
  [[nodiscard]] double rate() const noexcept { return rate_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

  /// JSON text; not the schedule itself, which the program makes again.
  [[nodiscard]] std::string state() const;
  void load_state(const std::string& json);

 private:
  void set_rate(double rate);
  [[nodiscard]] double rate_at(std::uint64_t step) const;

  torch::optim::Optimizer& optimizer_;
  schedule::Rate schedule_;
  RateSchedulerOptions options_;
  std::vector<double> ratios_;    // of each group's rate to the first's
  std::vector<double> momentum_;  // of each group, without correction
  double rate_;
  std::uint64_t steps_ = 0;
};

}  // namespace kolo

// Trains one architecture: the loop behind the run functions.
//
// kolo::Trainer is for one input, one target and callbacks that see every step; here there are
// several of each, and networks so small that what is done besides forward, backward and step
// counts. So samples are gathered in blocks of many batches, batches are views of them, and losses
// and metrics are read once a block. Samplers, schedules, collectives and DistributedOptimizer are
// the same.
//
// Cost of a step beyond forward and backward: two views, one gather of gradients, one optimizer
// step on one tensor.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/nas/problem.h"
#include "nas/problem/hyperparameters.h"
#include "nas/problem/metrics.h"
#include "nas/run/ranks.h"
#include "nas/run/scaled_rates.h"

namespace kolo::nas {

/// What is to be trained and how. Refers to data of the problem.
struct TrainingTask {
  std::shared_ptr<Model> model;  ///< with its initial weights
  const DataSplit* data = nullptr;
  struct Loss {
    LossFunction function;
    double weight = 1;
  };
  std::vector<Loss> losses;                  ///< one per output
  std::vector<std::vector<Metric>> metrics;  ///< by output
  Augment augment{};
  TrainingSettings settings{};
  ScalingDefaults scaling{};
  std::uint64_t seed = 0;
  Ranks ranks{};
  bool validate_last_epoch_only = false;

  /// Which metric says what weights are best, to keep them; "": they are not kept.
  std::string best_by{};
  bool best_is_lowest = false;

  /// On rank 0: called after each epoch.
  std::function<void(std::int64_t epochs_done, const History&)> after_epoch{};
  /// On rank 0: whether to end now. Asked often.
  std::function<bool()> should_stop{};
};

enum class TrainingEnd { epochs, early_stopping, time_limit, stopped, not_a_number };
std::string_view to_string(TrainingEnd end) noexcept;

struct TrainingOutcome {
  History history;
  TrainingEnd end = TrainingEnd::epochs;
  std::int64_t epochs = 0;  ///< those that were finished or, at the end, begun
  double seconds = 0, predict_seconds = 0;
  int ranks = 1;
  std::size_t global_batch = 0;  ///< samples a step, of all ranks together
  double peak_rate = 0;          ///< the learning rate after scaling and warm-up
  /// Parameters and buffers as they were in the best epoch, by name.
  std::vector<std::pair<std::string, torch::Tensor>> best_weights;
};

/// Collective over the ranks, which get the same outcome (times apart).
TrainingOutcome train(const TrainingTask& task);

}  // namespace kolo::nas

// The hyperparameters that the run functions understand.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/value.h"

namespace kolo::nas {

using search::Value;

/// When a metric stopped becoming better.
struct PatienceSettings {
  std::string monitor = "val_loss";
  std::optional<bool> lower_is_better{};  ///< nothing: by the metric's name
  std::int64_t patience = 0;
  double min_delta = 0;

  /// As Keras' mode "auto" has it: accuracies, R² and AUC become better upward, all else downward.
  [[nodiscard]] bool is_lower_better() const;
};
struct EarlyStopping : PatienceSettings {};
struct ReduceOnPlateau : PatienceSettings {
  double factor = 0.1;
  double min_rate = 0;
};

struct TrainingSettings {
  std::int64_t batch_size = 32;
  double learning_rate = 0.001;
  std::string optimizer = "adam";
  std::int64_t num_epochs = 1;
  std::string loss{};  ///< "": the problem's
  double momentum = 0, weight_decay = 0;

  /// The linear scaling rule, where several ranks train. Nothing: as the run function has it.
  std::optional<bool> lsr_batch_size{}, lsr_learning_rate{}, warmup_lr{};
  double warmup_epochs = 5;
  /// Ranks that an evaluation uses on a node; 0: all there are.
  std::int64_t ranks_per_node = 0;

  std::optional<EarlyStopping> early_stopping{};
  std::optional<ReduceOnPlateau> reduce_on_plateau{};
  double time_limit_seconds = 0;  ///< 0: none
  std::optional<std::uint64_t> seed{};
  std::int64_t repeat = 1;  ///< so many trainings, the best of which counts

  /// Throws not_found for an unknown name, listing the known ones, and invalid_argument naming the
  /// hyperparameter for a value that cannot be.
  static TrainingSettings from(const Value& dictionary);
};

/// Throws not_found, listing the known ones.
void check_hyperparameter_name(std::string_view name);

}  // namespace kolo::nas

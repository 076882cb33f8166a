// The table of optimizers.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "base/registry.h"

namespace kolo::nas {

struct OptimizerSettings {
  double rate = 0.001;
  double momentum = 0;
  double weight_decay = 0;
};

struct NamedOptimizer {
  std::unique_ptr<torch::optim::Optimizer> (*make)(std::vector<torch::Tensor> parameters,
                                                   const OptimizerSettings& settings);
  /// Whether each number is treated by itself, so that all parameters may be one long tensor.
  bool elementwise;
};

extern const Registry<NamedOptimizer> kOptimizers;

}  // namespace kolo::nas

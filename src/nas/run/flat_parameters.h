// All parameters of a network in one long tensor.
//
// Architectures of a search have dozens of small tensors, and an optimizer makes a dozen calls for
// each: on networks of a few thousand weights that costs more than forward and backward. Optimizers
// that treat every number by itself give the same result on one long tensor, of which the
// parameters are views.
#pragma once

#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "nas/problem/optimizers.h"

namespace kolo::nas {

/// Moves the parameters of a module into one tensor. The module must outlive it and must not be
/// moved to another device or type meanwhile.
class FlatParameters {
 public:
  explicit FlatParameters(torch::nn::Module& module);

  /// Each once, also where layers share them.
  [[nodiscard]] const std::vector<torch::Tensor>& parameters() const noexcept {
    return parameters_;
  }
  [[nodiscard]] const torch::OrderedDict<std::string, torch::Tensor>& named() const noexcept {
    return named_;
  }
  /// Undefined when there are none.
  [[nodiscard]] torch::Tensor& values() noexcept { return values_; }
  /// The gradients of all, in the order of values(); zero where backward did not come.
  torch::Tensor& gather_gradients();
  void clear_gradients();

 private:
  std::vector<torch::Tensor> parameters_;
  torch::OrderedDict<std::string, torch::Tensor> named_;
  torch::Tensor values_, gradients_, zeros_;
  std::vector<torch::Tensor> pieces_;
};

/// What DistributedOptimizer and others see: an optimizer of the parameters, whose step is one of
/// the long tensor. `flat` must outlive it.
class FlatOptimizer : public torch::optim::Optimizer {
 public:
  FlatOptimizer(FlatParameters& flat, const NamedOptimizer& kind,
                const OptimizerSettings& settings);

  torch::Tensor step(LossClosure closure = nullptr) override;
  /// The one that holds rate and momenta.
  [[nodiscard]] torch::optim::Optimizer& inner() noexcept { return *inner_; }

 private:
  FlatParameters& flat_;
  std::unique_ptr<torch::optim::Optimizer> inner_;
};

}  // namespace kolo::nas

// LARS: momentum SGD whose rate is adapted layer by layer.
//
// You, Gitman and Ginsburg, "Large batch training of convolutional networks", 2017, algorithm 1.
// For each tensor of weights w with gradient g:
//   local = trust · |w| / (|g| + decay·|w|)
//   v     = momentum · v + rate · local · (g + decay · w)
//   w     = w - v
// Where |w| or |g| is zero, local is 1. Tensors of one dimension or none (biases, scales of
// normalisation) take part with local = 1 and without decay unless adapt_all.
#pragma once

#include <torch/torch.h>

#include <vector>

namespace kolo {

struct LarsOptions : torch::optim::OptimizerCloneableOptions<LarsOptions> {
  LarsOptions(double lr = 0.1) : lr_(lr) {}  // NOLINT: as libtorch's options
  TORCH_ARG(double, lr);
  TORCH_ARG(double, momentum) = 0.9;
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(double, trust) = 0.001;
  TORCH_ARG(double, eps) = 0.0;  ///< added to the divisor
  TORCH_ARG(bool, adapt_all) = false;

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return lr_; }
  void set_lr(const double lr) override { lr_ = lr; }
};

struct LarsParamState : torch::optim::OptimizerCloneableParamState<LarsParamState> {
  TORCH_ARG(torch::Tensor, momentum_buffer);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

class Lars : public torch::optim::Optimizer {
 public:
  /// Throws invalid_argument for settings below zero.
  explicit Lars(std::vector<torch::Tensor> parameters, LarsOptions defaults = {});
  explicit Lars(std::vector<torch::optim::OptimizerParamGroup> groups, LarsOptions defaults = {});

  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
};

}  // namespace kolo

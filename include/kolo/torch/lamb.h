// LAMB: Adam whose step is adapted layer by layer.
//
// You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", 2019,
// algorithm 2. For each tensor of weights w with gradient g, in step t:
//   m = beta1·m + (1 - beta1)·g           m^ = m / (1 - beta1^t)
//   v = beta2·v + (1 - beta2)·g²          v^ = v / (1 - beta2^t)
//   u = m^ / (sqrt(v^) + eps) + decay·w
//   w = w - rate · phi(|w|) / |u| · u     phi(z) = min(max(z, low), high)
// Where phi(|w|) or |u| is zero their ratio is 1.
#pragma once

#include <torch/torch.h>

#include <limits>
#include <tuple>
#include <vector>

namespace kolo {

struct LambOptions : torch::optim::OptimizerCloneableOptions<LambOptions> {
  LambOptions(double lr = 1e-3) : lr_(lr) {}  // NOLINT: as libtorch's options
  using Betas = std::tuple<double, double>;
  TORCH_ARG(double, lr);
  TORCH_ARG(Betas, betas) = std::make_tuple(0.9, 0.999);
  TORCH_ARG(double, eps) = 1e-6;
  TORCH_ARG(double, weight_decay) = 0.0;
  TORCH_ARG(double, low) = 0.0;
  TORCH_ARG(double, high) = std::numeric_limits<double>::infinity();

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
  double get_lr() const override { return lr_; }
  void set_lr(const double lr) override { lr_ = lr; }
};

struct LambParamState : torch::optim::OptimizerCloneableParamState<LambParamState> {
  TORCH_ARG(int64_t, step) = 0;
  TORCH_ARG(torch::Tensor, exp_avg);
  TORCH_ARG(torch::Tensor, exp_avg_sq);

 public:
  void serialize(torch::serialize::InputArchive& archive) override;
  void serialize(torch::serialize::OutputArchive& archive) const override;
};

class Lamb : public torch::optim::Optimizer {
 public:
  /// Throws invalid_argument for settings out of their range.
  explicit Lamb(std::vector<torch::Tensor> parameters, LambOptions defaults = {});
  explicit Lamb(std::vector<torch::optim::OptimizerParamGroup> groups, LambOptions defaults = {});

  torch::Tensor step(LossClosure closure = nullptr) override;
  void save(torch::serialize::OutputArchive& archive) const override;
  void load(torch::serialize::InputArchive& archive) override;
};

}  // namespace kolo

#include "nas/run/flat_parameters.h"

#include <unordered_set>

namespace kolo::nas {

FlatParameters::FlatParameters(torch::nn::Module& module) {
  std::unordered_set<const c10::TensorImpl*> seen;
  for (const auto& item : module.named_parameters()) {
    if (!item.value().requires_grad() || !seen.insert(item.value().unsafeGetTensorImpl()).second)
      continue;
    parameters_.push_back(item.value());
    named_.insert(item.key(), item.value());
  }
  if (parameters_.empty()) return;
  torch::NoGradGuard no_grad;
  for (const auto& parameter : parameters_) pieces_.push_back(parameter.detach().reshape(-1));
  values_ = torch::cat(pieces_);
  gradients_ = torch::zeros_like(values_);
  zeros_ = torch::zeros_like(values_);
  std::int64_t place = 0;
  for (auto& parameter : parameters_) {
    parameter.set_data(values_.narrow(0, place, parameter.numel()).view(parameter.sizes()));
    place += parameter.numel();
  }
}

torch::Tensor& FlatParameters::gather_gradients() {
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const torch::Tensor& gradient = parameters_[i].grad();
    pieces_[i] =
        gradient.defined() ? gradient.reshape(-1) : zeros_.narrow(0, 0, parameters_[i].numel());
  }
  if (!pieces_.empty()) torch::cat_out(gradients_, pieces_);
  return gradients_;
}

void FlatParameters::clear_gradients() {
  for (auto& parameter : parameters_) parameter.mutable_grad().reset();
}

namespace {

/// One group with all parameters; the options are those of nobody: inner() has the real ones.
struct NoOptions : torch::optim::OptimizerCloneableOptions<NoOptions> {
  void serialize(torch::serialize::InputArchive&) override {}
  void serialize(torch::serialize::OutputArchive&) const override {}
  double get_lr() const override { return 0; }
  void set_lr(const double) override {}
};

}  // namespace

FlatOptimizer::FlatOptimizer(FlatParameters& flat, const NamedOptimizer& kind,
                             const OptimizerSettings& settings)
    : torch::optim::Optimizer(flat.parameters(), std::make_unique<NoOptions>()),
      flat_(flat),
      inner_(kind.make(
          kind.elementwise ? std::vector<torch::Tensor>{flat.values()} : flat.parameters(),
          settings)) {
  if (kind.elementwise) flat_.values().mutable_grad() = torch::Tensor();
}

torch::Tensor FlatOptimizer::step(LossClosure closure) {
  torch::Tensor loss = closure ? closure() : torch::Tensor();
  torch::NoGradGuard no_grad;
  auto& own = inner_->param_groups().front().params();
  const bool long_tensor = own.size() == 1 && own.front().is_same(flat_.values());
  if (long_tensor) flat_.values().mutable_grad() = flat_.gather_gradients();
  inner_->step();
  return loss;
}

}  // namespace kolo::nas

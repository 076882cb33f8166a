#include "kolo/torch/lamb.h"

#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "train/optim/serialization.h"

namespace kolo {
namespace {

void check(const LambOptions& options) {
  const auto [beta1, beta2] = options.betas();
  const bool right = options.lr() >= 0 && beta1 >= 0 && beta1 < 1 && beta2 >= 0 && beta2 < 1 &&
                     options.eps() >= 0 && options.weight_decay() >= 0 && options.low() >= 0 &&
                     options.high() >= options.low();
  if (!right)
    throw_error(
        ErrorCode::invalid_argument,
        "Lamb: lr {}, betas {} and {}, eps {}, weight_decay {}, low {}, high {}: none may be "
        "negative, betas are below 1, low is not above high",
        options.lr(), beta1, beta2, options.eps(), options.weight_decay(), options.low(),
        options.high());
}

double trust_ratio(const LambOptions& options, double weight_norm, double update_norm) {
  const double phi = std::min(std::max(weight_norm, options.low()), options.high());
  return phi == 0 || update_norm == 0 ? 1.0 : phi / update_norm;
}

}  // namespace

Lamb::Lamb(std::vector<torch::Tensor> parameters, LambOptions defaults)
    : Lamb({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

Lamb::Lamb(std::vector<torch::optim::OptimizerParamGroup> groups, LambOptions defaults)
    : Optimizer(std::move(groups), std::make_unique<LambOptions>(defaults)) {
  check(defaults);
}

torch::Tensor Lamb::step(LossClosure closure) {
  torch::Tensor loss = train::evaluate(closure);
  torch::NoGradGuard no_grad;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<const LambOptions&>(group.options());
    const auto [beta1, beta2] = options.betas();
    for (torch::Tensor& weights : group.params()) {
      const torch::Tensor& gradient = weights.grad();
      if (!gradient.defined()) continue;
      auto& state = train::state_of<LambParamState>(state_, weights);
      if (!state.exp_avg().defined()) {
        state.exp_avg(torch::zeros_like(weights, torch::MemoryFormat::Preserve));
        state.exp_avg_sq(torch::zeros_like(weights, torch::MemoryFormat::Preserve));
      }
      state.step(state.step() + 1);
      const auto t = static_cast<double>(state.step());
      torch::Tensor &mean = state.exp_avg(), &square = state.exp_avg_sq();
      mean.mul_(beta1).add_(gradient, 1 - beta1);
      square.mul_(beta2).addcmul_(gradient, gradient, 1 - beta2);

      torch::Tensor update = (square / (1 - std::pow(beta2, t))).sqrt_().add_(options.eps());
      update = (mean / (1 - std::pow(beta1, t))).div_(update);
      if (options.weight_decay() != 0) update.add_(weights, options.weight_decay());
      const double ratio =
          trust_ratio(options, weights.norm().item<double>(), update.norm().item<double>());
      weights.sub_(update, options.lr() * ratio);
    }
  }
  return loss;
}

void Lamb::save(torch::serialize::OutputArchive& archive) const {
  train::save_optimizer(*this, archive);
}
void Lamb::load(torch::serialize::InputArchive& archive) { train::load_optimizer(*this, archive); }

void LambOptions::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("lr", torch::IValue(lr()));
  archive.write("beta1", torch::IValue(std::get<0>(betas())));
  archive.write("beta2", torch::IValue(std::get<1>(betas())));
  archive.write("eps", torch::IValue(eps()));
  archive.write("weight_decay", torch::IValue(weight_decay()));
  archive.write("low", torch::IValue(low()));
  archive.write("high", torch::IValue(high()));
}
void LambOptions::serialize(torch::serialize::InputArchive& archive) {
  lr(train::read<double>(archive, "lr"));
  betas({train::read<double>(archive, "beta1"), train::read<double>(archive, "beta2")});
  eps(train::read<double>(archive, "eps"));
  weight_decay(train::read<double>(archive, "weight_decay"));
  low(train::read<double>(archive, "low"));
  high(train::read<double>(archive, "high"));
}

void LambParamState::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("step", torch::IValue(step()));
  if (!exp_avg().defined()) return;
  archive.write("exp_avg", torch::IValue(exp_avg()));
  archive.write("exp_avg_sq", torch::IValue(exp_avg_sq()));
}
void LambParamState::serialize(torch::serialize::InputArchive& archive) {
  step(train::read<int64_t>(archive, "step"));
  torch::IValue value;
  if (archive.try_read("exp_avg", value)) exp_avg(value.toTensor());
  if (archive.try_read("exp_avg_sq", value)) exp_avg_sq(value.toTensor());
}

}  // namespace kolo

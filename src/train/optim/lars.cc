#include "kolo/torch/lars.h"

#include "base/errors.h"
#include "train/optim/serialization.h"

namespace kolo {
namespace {

void check(const LarsOptions& options) {
  if (!(options.lr() >= 0 && options.momentum() >= 0 && options.weight_decay() >= 0 &&
        options.trust() > 0 && options.eps() >= 0))
    throw_error(ErrorCode::invalid_argument,
                "Lars: lr {}, momentum {}, weight_decay {}, trust {}, eps {}: none may be negative",
                options.lr(), options.momentum(), options.weight_decay(), options.trust(),
                options.eps());
}

double local_rate(const LarsOptions& options, double weight_norm, double gradient_norm) {
  if (weight_norm == 0 || gradient_norm == 0) return 1.0;
  return options.trust() * weight_norm /
         (gradient_norm + options.weight_decay() * weight_norm + options.eps());
}

}  // namespace

Lars::Lars(std::vector<torch::Tensor> parameters, LarsOptions defaults)
    : Lars({torch::optim::OptimizerParamGroup(std::move(parameters))}, defaults) {}

Lars::Lars(std::vector<torch::optim::OptimizerParamGroup> groups, LarsOptions defaults)
    : Optimizer(std::move(groups), std::make_unique<LarsOptions>(defaults)) {
  check(defaults);
}

torch::Tensor Lars::step(LossClosure closure) {
  torch::Tensor loss = train::evaluate(closure);
  torch::NoGradGuard no_grad;
  for (auto& group : param_groups_) {
    const auto& options = static_cast<const LarsOptions&>(group.options());
    for (torch::Tensor& weights : group.params()) {
      const torch::Tensor& gradient = weights.grad();
      if (!gradient.defined()) continue;
      const bool adapts = weights.dim() > 1 || options.adapt_all();
      torch::Tensor direction = gradient;
      double local = 1.0;
      if (adapts) {
        local = local_rate(options, weights.norm().item<double>(), gradient.norm().item<double>());
        if (options.weight_decay() != 0) direction = gradient.add(weights, options.weight_decay());
      }
      auto& state = train::state_of<LarsParamState>(state_, weights);
      if (!state.momentum_buffer().defined())
        state.momentum_buffer(torch::zeros_like(weights, torch::MemoryFormat::Preserve));
      torch::Tensor& velocity = state.momentum_buffer();
      velocity.mul_(options.momentum()).add_(direction, options.lr() * local);
      weights.sub_(velocity);
    }
  }
  return loss;
}

void Lars::save(torch::serialize::OutputArchive& archive) const {
  train::save_optimizer(*this, archive);
}
void Lars::load(torch::serialize::InputArchive& archive) { train::load_optimizer(*this, archive); }

void LarsOptions::serialize(torch::serialize::OutputArchive& archive) const {
  archive.write("lr", torch::IValue(lr()));
  archive.write("momentum", torch::IValue(momentum()));
  archive.write("weight_decay", torch::IValue(weight_decay()));
  archive.write("trust", torch::IValue(trust()));
  archive.write("eps", torch::IValue(eps()));
  archive.write("adapt_all", torch::IValue(adapt_all()));
}
void LarsOptions::serialize(torch::serialize::InputArchive& archive) {
  lr(train::read<double>(archive, "lr"));
  momentum(train::read<double>(archive, "momentum"));
  weight_decay(train::read<double>(archive, "weight_decay"));
  trust(train::read<double>(archive, "trust"));
  eps(train::read<double>(archive, "eps"));
  adapt_all(train::read<bool>(archive, "adapt_all"));
}

void LarsParamState::serialize(torch::serialize::OutputArchive& archive) const {
  if (momentum_buffer().defined())
    archive.write("momentum_buffer", torch::IValue(momentum_buffer()));
}
void LarsParamState::serialize(torch::serialize::InputArchive& archive) {
  torch::IValue value;
  if (archive.try_read("momentum_buffer", value)) momentum_buffer(value.toTensor());
}

}  // namespace kolo

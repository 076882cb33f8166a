#include "nas/problem/optimizers.h"

#include "kolo/torch/lamb.h"
#include "kolo/torch/lars.h"

namespace kolo::nas {
namespace {

using Parameters = std::vector<torch::Tensor>;
using Made = std::unique_ptr<torch::optim::Optimizer>;

Made sgd(Parameters parameters, const OptimizerSettings& settings) {
  return std::make_unique<torch::optim::SGD>(std::move(parameters),
                                             torch::optim::SGDOptions(settings.rate)
                                                 .momentum(settings.momentum)
                                                 .weight_decay(settings.weight_decay));
}

Made adam(Parameters parameters, const OptimizerSettings& settings) {
  return std::make_unique<torch::optim::Adam>(
      std::move(parameters),
      torch::optim::AdamOptions(settings.rate).weight_decay(settings.weight_decay));
}

Made adamw(Parameters parameters, const OptimizerSettings& settings) {
  return std::make_unique<torch::optim::AdamW>(
      std::move(parameters),
      torch::optim::AdamWOptions(settings.rate).weight_decay(settings.weight_decay));
}

Made rmsprop(Parameters parameters, const OptimizerSettings& settings) {
  return std::make_unique<torch::optim::RMSprop>(std::move(parameters),
                                                 torch::optim::RMSpropOptions(settings.rate)
                                                     .momentum(settings.momentum)
                                                     .weight_decay(settings.weight_decay));
}

Made adagrad(Parameters parameters, const OptimizerSettings& settings) {
  return std::make_unique<torch::optim::Adagrad>(
      std::move(parameters),
      torch::optim::AdagradOptions(settings.rate).weight_decay(settings.weight_decay));
}

Made lars(Parameters parameters, const OptimizerSettings& settings) {
  LarsOptions options(settings.rate);
  options.momentum(settings.momentum).weight_decay(settings.weight_decay);
  return std::make_unique<Lars>(std::move(parameters), options);
}

Made lamb(Parameters parameters, const OptimizerSettings& settings) {
  LambOptions options(settings.rate);
  options.weight_decay(settings.weight_decay);
  return std::make_unique<Lamb>(std::move(parameters), options);
}

constexpr Entry<NamedOptimizer> kOptimizerTable[] = {
    {"sgd", "gradient descent, with momentum if wanted", {sgd, true}},
    {"adam", "Kingma and Ba 2014", {adam, true}},
    {"adamw", "adam with decoupled weight decay", {adamw, true}},
    {"rmsprop", "rates by a running mean of squares", {rmsprop, true}},
    {"adagrad", "rates by the sum of squares", {adagrad, true}},
    {"lars", "sgd adapted layer by layer, for large batches", {lars, false}},
    {"lamb", "adam adapted layer by layer, for large batches", {lamb, false}},
};

}  // namespace

constinit const Registry<NamedOptimizer> kOptimizers{"optimizer", kOptimizerTable};

}  // namespace kolo::nas

#include "nas/problem/losses.h"

#include <cmath>

#include "base/errors.h"
#include "nas/problem/aliases.h"

namespace kolo::nas {
namespace {

using torch::Tensor;
namespace F = torch::nn::functional;

// Keras' guard of divisions and logarithms.
constexpr double kEpsilon = 1e-7;

Tensor mse(const Tensor& outputs, const Tensor& targets, const Tensor&) {
  return torch::mse_loss(outputs, targets);
}

Tensor mae(const Tensor& outputs, const Tensor& targets, const Tensor&) {
  return torch::l1_loss(outputs, targets);
}

Tensor huber(const Tensor& outputs, const Tensor& targets, const Tensor&) {
  return torch::huber_loss(outputs, targets);
}

/// log(cosh(d)) = d + softplus(-2d) - log 2, which does not overflow.
Tensor log_cosh(const Tensor& outputs, const Tensor& targets, const Tensor&) {
  const Tensor difference = outputs - targets;
  return (difference + torch::softplus(-2 * difference) - std::log(2.0)).mean();
}

Tensor mape(const Tensor& outputs, const Tensor& targets, const Tensor&) {
  return 100 * ((targets - outputs) / targets.abs().clamp_min(kEpsilon)).abs().mean();
}

Tensor msle(const Tensor& outputs, const Tensor& targets, const Tensor&) {
  return torch::mse_loss(outputs.clamp_min(kEpsilon).log1p(), targets.clamp_min(kEpsilon).log1p());
}

/// Targets are classes, or probabilities of them. Keras' class weights weigh samples and leave the
/// divisor alone; libtorch's own would change both.
Tensor cross_entropy(const Tensor& outputs, const Tensor& targets, const Tensor& class_weights) {
  if (!class_weights.defined()) return F::cross_entropy(outputs, targets);
  const Tensor each =
      F::cross_entropy(outputs, targets, F::CrossEntropyFuncOptions().reduction(torch::kNone));
  const Tensor classes = targets.is_floating_point() ? targets.argmax(-1) : targets;
  return (each * class_weights.index_select(0, classes.flatten()).view_as(each)).mean();
}

Tensor binary_cross_entropy(const Tensor& outputs, const Tensor& targets,
                            const Tensor& class_weights) {
  // Two classes with a score each.
  if (!targets.is_floating_point() && outputs.dim() == 2 && outputs.size(1) == 2)
    return cross_entropy(outputs, targets, class_weights);
  const Tensor wanted = targets.to(outputs.scalar_type());
  if (!class_weights.defined()) return F::binary_cross_entropy_with_logits(outputs, wanted);
  const Tensor weights = class_weights[0] + (class_weights[1] - class_weights[0]) * wanted.round();
  return F::binary_cross_entropy_with_logits(
      outputs, wanted, F::BinaryCrossEntropyWithLogitsFuncOptions().weight(weights));
}

Tensor poisson(const Tensor& outputs, const Tensor& targets, const Tensor&) {
  return (outputs - targets * (outputs + kEpsilon).log()).mean();
}

constexpr Entry<NamedLoss> kLossTable[] = {
    {"mse", "mean of squared differences", mse},
    {"mae", "mean of absolute differences", mae},
    {"huber", "squared up to a difference of 1, absolute beyond", huber},
    {"log_cosh", "logarithm of the hyperbolic cosine of the difference", log_cosh},
    {"mape", "absolute differences in per cent of the target", mape},
    {"msle", "squared differences of logarithms", msle},
    {"cross_entropy", "of classes, from their scores (logits)", cross_entropy},
    {"binary_cross_entropy", "of truths, each from its score (logit)", binary_cross_entropy},
    {"poisson", "output - target · log(output), for counts", poisson},
};

constexpr Alias kLossAliases[] = {
    {"mean_squared_error", "mse"},
    {"mean_absolute_error", "mae"},
    {"huber_loss", "huber"},
    {"logcosh", "log_cosh"},
    {"mean_absolute_percentage_error", "mape"},
    {"mean_squared_logarithmic_error", "msle"},
    {"categorical_crossentropy", "cross_entropy"},
    {"sparse_categorical_crossentropy", "cross_entropy"},
    {"binary_crossentropy", "binary_cross_entropy"},
};

}  // namespace

constinit const Registry<NamedLoss> kLosses{"loss", kLossTable};

std::string_view loss_name(std::string_view name) {
  return kLosses.at(without_alias(name, kLossAliases)).name;
}

LossFunction make_loss(std::string_view name, const std::vector<double>& class_weights) {
  const auto& entry = kLosses.at(loss_name(name));
  const NamedLoss loss = entry.make;
  Tensor weights;
  if (!class_weights.empty()) {
    const bool binary = loss == binary_cross_entropy;
    if (loss != cross_entropy && !binary)
      throw_error(ErrorCode::invalid_argument,
                  "loss '{}' does not use class weights; cross_entropy and binary_cross_entropy do",
                  entry.name);
    if (binary && class_weights.size() != 2)
      throw_error(ErrorCode::invalid_argument,
                  "binary_cross_entropy needs 2 class weights, for false and true, but got {}",
                  class_weights.size());
    weights = torch::tensor(class_weights, torch::kFloat32);
  }
  return [loss, weights](const Tensor& outputs, const Tensor& targets) {
    return loss(outputs, targets, weights);
  };
}

}  // namespace kolo::nas

// The table of losses; Keras' names are understood.
#pragma once

#include <string_view>
#include <vector>

#include "base/registry.h"
#include "kolo/nas/problem.h"

namespace kolo::nas {

/// Mean over the samples. `class_weights` is undefined, or holds one number per class.
using NamedLoss = torch::Tensor (*)(const torch::Tensor& outputs, const torch::Tensor& targets,
                                    const torch::Tensor& class_weights);

extern const Registry<NamedLoss> kLosses;

/// The name in kLosses of what may be one of Keras' names ("mean_squared_error"). Throws not_found,
/// listing the known ones.
std::string_view loss_name(std::string_view name);

/// Throws invalid_argument when the loss has no use for class weights.
LossFunction make_loss(std::string_view name, const std::vector<double>& class_weights);

}  // namespace kolo::nas

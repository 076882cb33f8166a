// The activations that layers can end with.
#pragma once

#include <torch/torch.h>

#include <string_view>

namespace kolo::nas {

enum class Activation { none, relu, tanh, sigmoid, swish, elu, selu, softmax, gelu };

/// "linear" is understood, as Keras calls it. Throws not_found, listing the known ones.
Activation activation_of(std::string_view name);

/// `input` is batch x shape. Softmax is over features: the channels of images, else the last axis.
torch::Tensor activate(const torch::Tensor& input, Activation activation);

}  // namespace kolo::nas

#include "nas/graph/activations.h"

#include "base/registry.h"
#include "kolo/nas/operations.h"

namespace kolo::nas {
namespace {

constexpr Entry<Activation> kActivations[] = {
    {"none", "x", Activation::none},
    {"relu", "max(x, 0)", Activation::relu},
    {"tanh", "hyperbolic tangent", Activation::tanh},
    {"sigmoid", "1 / (1 + exp(-x))", Activation::sigmoid},
    {"swish", "x · sigmoid(x)", Activation::swish},
    {"elu", "x, exp(x) - 1 below 0", Activation::elu},
    {"selu", "elu, scaled so that it keeps mean and variance", Activation::selu},
    {"softmax", "exp(x), normalised over features", Activation::softmax},
    {"gelu", "x · P(X < x) with normal X", Activation::gelu},
};

constexpr Registry<Activation> kActivationTable{"activation", kActivations};

}  // namespace

std::vector<std::string_view> activations() { return kActivationTable.names(); }

Activation activation_of(std::string_view name) {
  return name == "linear" ? Activation::none : kActivationTable.at(name).make;
}

torch::Tensor activate(const torch::Tensor& input, Activation activation) {
  switch (activation) {
    case Activation::none: return input;
    case Activation::relu: return torch::relu(input);
    case Activation::tanh: return torch::tanh(input);
    case Activation::sigmoid: return torch::sigmoid(input);
    case Activation::swish: return torch::silu(input);
    case Activation::elu: return torch::elu(input);
    case Activation::selu: return torch::selu(input);
    case Activation::softmax: return torch::softmax(input, input.dim() == 4 ? 1 : -1);
    case Activation::gelu: return torch::gelu(input);
  }
  return input;
}

}  // namespace kolo::nas

// Initial weights, as in Keras, because the results of DeepHyper depend on them.
//
// Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks",
// 2010: uniform in ±sqrt(6 / (fan_in + fan_out)). Saxe et al., "Exact solutions to the nonlinear
// dynamics of learning in deep linear neural networks", 2013: orthogonal matrices.
#pragma once

#include <torch/torch.h>

#include <cmath>
#include <cstdint>
#include <vector>

namespace kolo::nas {

inline torch::Tensor uniform_weights(const std::vector<std::int64_t>& shape, double bound) {
  torch::NoGradGuard no_grad;  // libtorch's layers draw twice where one only replaces their weights
  return torch::empty(shape).uniform_(-bound, bound);
}

inline torch::Tensor glorot_uniform(const std::vector<std::int64_t>& shape, std::int64_t fan_in,
                                    std::int64_t fan_out) {
  return uniform_weights(shape, std::sqrt(6.0 / static_cast<double>(fan_in + fan_out)));
}

}  // namespace kolo::nas

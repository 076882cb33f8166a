#include "multiproc/train/bits.h"

#include <fmt/format.h>
#include <torch/torch.h>

#include <cstring>
#include <sstream>

#include "base/hash.h"
#include "kolo/torch/distributed_optimizer.h"

namespace kolo::test {
namespace {

namespace nn = torch::nn;

struct BitsNetImpl : nn::Module {
  BitsNetImpl()
      : first(register_module("first", nn::Linear(12, 37))),
        norm(register_module("norm", nn::BatchNorm1d(37))),
        left(register_module("left", nn::Linear(37, 19))),
        right(register_module("right", nn::Linear(37, 19))),
        last(register_module("last", nn::Linear(19, 5))) {}

  torch::Tensor forward(torch::Tensor x, bool goes_right) {
    x = torch::dropout(torch::relu(norm(first(x))), 0.2, is_training());
    return last(torch::tanh(goes_right ? right(x) : left(x)));
  }

  nn::Linear first;
  nn::BatchNorm1d norm;
  nn::Linear left, right, last;
};
TORCH_MODULE(BitsNet);

std::uint64_t add_to(std::uint64_t hash, const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().contiguous();
  const auto* bytes = static_cast<const char*>(flat.data_ptr());
  for (std::size_t i = 0; i + 4 <= flat.nbytes(); i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes + i, sizeof word);
    hash = hash_combine(hash, word);
  }
  return hash;
}

}  // namespace

std::string bits_of_each_step(Engine& engine, int steps) {
  torch::manual_seed(11);
  BitsNet net;
  torch::optim::SGD sgd(net->parameters(), torch::optim::SGDOptions(0.05).momentum(0.9));
  DistributedOptimizerOptions options;
  options.virtual_ranks = kBitsVirtualRanks;
  options.bucket_bytes = 2048;  // several
  options.clip_global_norm = 1.0;
  options.engine = &engine;
  DistributedOptimizer optimizer(sgd, net->named_parameters(), options);
  torch::Tensor loss = torch::zeros({1});
  optimizer.average_with_each_step(net->buffers());
  optimizer.average_with_each_step({loss});
  std::string lines;
  for (int step = 0; step < steps; ++step) {
    for (const int v : optimizer.virtual_ranks()) {
      auto micro_batch = optimizer.micro_batch(v);
      const torch::Tensor inputs = torch::randn({6, 12});
      const bool goes_right = micro_batch.random().below(3) == 0;
      const torch::Tensor error =
          torch::mse_loss(net->forward(inputs, goes_right), torch::sin(inputs.slice(1, 0, 5)));
      error.backward();
      loss[0] = error.detach();
    }
    optimizer.step();
    std::uint64_t hash = 0;
    for (const torch::Tensor& parameter : net->parameters()) hash = add_to(hash, parameter);
    for (const torch::Tensor& buffer : net->buffers()) hash = add_to(hash, buffer);
    lines += fmt::format("{:016x} {}\n", hash, loss.item<float>());
  }
  return lines;
}

std::string first_difference(const std::string& a, const std::string& b) {
  std::istringstream left(a), right(b);
  for (int line = 0;; ++line) {
    std::string from_left, from_right;
    const bool has_left = static_cast<bool>(std::getline(left, from_left));
    const bool has_right = static_cast<bool>(std::getline(right, from_right));
    if (!has_left && !has_right) return "";
    if (from_left != from_right || has_left != has_right)
      return fmt::format("step {}: '{}' and '{}'", line, from_left, from_right);
  }
}

}  // namespace kolo::test

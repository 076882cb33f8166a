// A small problem that ranks and a lone process train alike.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kolo/torch/distributed_optimizer.h"
#include "support/process_ranks.h"

namespace kolo::test {

/// A net with a branch that not every input takes, in double precision.
struct ToyNetImpl : torch::nn::Module {
  ToyNetImpl();
  /// `branch` 0 or 1: the layer that is used; the other gets no gradient.
  torch::Tensor forward(torch::Tensor x, int branch = 0);
  torch::nn::Linear first{nullptr}, left{nullptr}, right{nullptr}, last{nullptr};
};
TORCH_MODULE(ToyNet);

/// The same weights in every process.
ToyNet make_net();

using MakeOptimizer = std::function<std::unique_ptr<torch::optim::Optimizer>(
    const std::vector<torch::Tensor>& parameters)>;
MakeOptimizer sgd(double momentum = 0.9, double weight_decay = 0);
MakeOptimizer adam();

inline constexpr int kGlobalBatch = 24;
struct ToyBatch {
  torch::Tensor inputs, targets;
};
/// Rows `rank`, `rank + size` … of the global batch of a step.
ToyBatch batch_of(int step, int rank, int size);
torch::Tensor loss_of(ToyNet& net, const ToyBatch& batch, int branch = 0);

/// Losses of a lone process on the global batch, and its weights at the end.
struct Reference {
  std::vector<double> losses;
  std::vector<torch::Tensor> weights;
};
Reference train_alone(int steps, const MakeOptimizer& make);

/// Trains on this rank's share; losses are averages over the ranks of the set.
Reference train_together(Engine& engine, int steps, const MakeOptimizer& make,
                         DistributedOptimizerOptions options = {});

/// Every loss and weight within `tolerance`.
void expect_close(const Reference& a, const Reference& b, double tolerance);

/// All ranks have the same bits.
void expect_same_bits(Engine& engine, const std::vector<torch::Tensor>& tensors);

/// Runs `body` on forked ranks with an engine each; failures are the test's.
using RankBody = std::function<void(Engine&, ProcessRank&)>;
void run_ranks_on(const std::vector<int>& host_of_rank, const RankBody& body);
/// `count` ranks of one host.
void run_ranks(int count, const RankBody& body);

}  // namespace kolo::test

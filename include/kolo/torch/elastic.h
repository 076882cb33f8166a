// What elastic runs keep of libtorch (kolo/elastic.h, docs/elastic-runs.md).
//
//   kolo::elastic::TorchState state(*net, sgd);
//   state.add(epoch).add(step);
//   kolo::elastic::run(state, [&](kolo::elastic::State&) {
//     kolo::DistributedOptimizer optimizer(sgd, net->named_parameters(), {.virtual_ranks = 8});
//     optimizer.set_steps(step);
//     …
//   });
//
// The network and the optimizer that it was made with live outside of the function; what wraps
// them, and belongs to one group of ranks, is made inside of it.
#pragma once

#include <torch/torch.h>

#include <memory>

#include "kolo/elastic.h"
#include "kolo/torch/rate_scheduler.h"
#include "kolo/torch/sampler.h"

namespace kolo::elastic {

// What a part keeps must outlive it. Copies of tensors are where the tensors are.

/// Parameters and buffers, as they are when the part is made: no layer may come later.
[[nodiscard]] std::unique_ptr<Part> part_of(torch::nn::Module& module);
/// Options (learning rate …) and state (momenta …) of SGD, Adam, AdamW, RMSprop, Adagrad, Lars or
/// Lamb; not while a DistributedOptimizer shares the state out. Throws unsupported for others.
[[nodiscard]] std::unique_ptr<Part> part_of(torch::optim::Optimizer& optimizer);
[[nodiscard]] std::unique_ptr<Part> part_of(RateScheduler& scheduler);
/// Of a fixed number of ranks, as of a virtual rank.
[[nodiscard]] std::unique_ptr<Part> part_of(DistributedSampler& sampler);
/// What is left of the epoch is dealt out anew to each group.
[[nodiscard]] std::unique_ptr<Part> part_of(ElasticSampler& sampler);
/// libtorch's generator. Each rank has a stream of its own: one that takes the state of others
/// begins a new one.
[[nodiscard]] std::unique_ptr<Part> part_of_random();

/// A State that begins with a network, its optimizer and libtorch's generator.
class TorchState : public State {
 public:
  TorchState(torch::nn::Module& module, torch::optim::Optimizer& optimizer);
};

}  // namespace kolo::elastic

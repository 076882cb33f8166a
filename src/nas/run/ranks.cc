#include "nas/run/ranks.h"

#include <span>

#include "kolo/context.h"
#include "kolo/torch/state.h"

namespace kolo::nas {

Ranks Ranks::all() {
  init();
  Ranks ranks;
  ranks.rank_ = kolo::rank();
  ranks.size_ = kolo::size();
  return ranks;
}

// The world communicator is free: gradients travel on the engine's own.

bool Ranks::first_says(bool mine) const { return first_says(mine ? 1.0 : 0.0) != 0; }

double Ranks::first_says(double mine) const {
  if (size_ > 1) world().broadcast(std::span(&mine, 1), 0);
  return mine;
}

void Ranks::add_up(torch::Tensor& sums) const {
  if (size_ > 1)
    world().allreduce(std::span(sums.data_ptr<double>(), static_cast<std::size_t>(sums.numel())),
                      ReduceOp::sum);
}

void Ranks::broadcast(const torch::nn::Module& module) const {
  if (size_ > 1) broadcast_parameters(module, 0);
}

}  // namespace kolo::nas

// A step of a GradientExchange whose rank computes virtual ranks, one after the other.
//
// Backward of a virtual rank begins without gradients. When a gradient is complete the hook adds it
// to the places of its parameter (virtual_share.h) and takes it away again, so that the next
// virtual rank begins without one too. What a virtual rank did not reach counts as zero. With the
// last one buckets become ready during backward as usual.
#include <fmt/ranges.h>
#include <torch/torch.h>

#include "base/errors.h"
#include "train/gradient_exchange.h"

namespace kolo::train {

void GradientExchange::begin_leaf(int virtual_rank) {
  outside_of_backward();
  const std::vector<int>& mine = options_.share->mine();
  const std::size_t next = leaf_ ? *leaf_ + 1 : 0;
  if (next >= mine.size() || mine[next] != virtual_rank)
    throw_error(ErrorCode::failed_precondition,
                "DistributedOptimizer: micro_batch({}) does not come next; this rank computes the "
                "virtual ranks {} in each step, in this order, and then calls step()",
                virtual_rank, fmt::join(mine, ", "));
  if (leaf_) end_leaf();
  leaf_ = next;
  if (next == 0) std::fill(used_.begin(), used_.end(), std::uint8_t{0});
  averages_->begin_leaf(next, pipeline_->communicator());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    states_[i].passes = 0;
    states_[i].is_folded = false;
    parameters_[i].mutable_grad().reset();
  }
}

void GradientExchange::end_leaf() {
  for (std::size_t i = 0; i < parameters_.size(); ++i)
    if (!states_[i].is_folded) fold(i);
  averages_->end_leaf(*leaf_);
}

void GradientExchange::end_leaves() {
  const std::vector<int>& mine = options_.share->mine();
  const std::size_t done = leaf_ ? *leaf_ + 1 : 0;
  if (done < mine.size())
    throw_error(ErrorCode::failed_precondition,
                "DistributedOptimizer: step() was called before the virtual ranks {} were computed;"
                " call micro_batch() and backward() for each of virtual_ranks() first",
                fmt::join(mine.begin() + static_cast<std::ptrdiff_t>(done), mine.end(), ", "));
  end_leaf();
}

void GradientExchange::fold(std::size_t index) {
  torch::NoGradGuard no_grad;
  Parameter& state = states_[index];
  torch::Tensor& grad = parameters_[index].mutable_grad();
  if (state.places.empty())  // the first step: there are no buckets yet
    for (std::size_t p = 0; p < options_.share->places(); ++p)
      state.places.push_back(
          torch::empty_like(parameters_[index], torch::TensorOptions().device(torch::kCPU)));
  torch::Tensor value = grad;
  if (grad.defined()) {
    used_[index] = 1;
    if (grad.is_sparse() && !options_.sparse_as_dense)
      throw_error(ErrorCode::unsupported,
                  "DistributedOptimizer: '{}' has a sparse gradient, which virtual ranks cannot "
                  "add; set sparse_as_dense",
                  infos_[index].name);
    if (grad.is_sparse()) value = grad.to_dense();
    if (options_.leaf_scale != 1.0) value = value * options_.leaf_scale;
    if (!value.is_cpu()) value = value.cpu();
  }
  options_.share->fold(*leaf_, state.places, value);
  state.is_folded = true;
  if (is_last_leaf() && !state.is_staged && state.view.defined() && used_[index] != 0)
    grad = state.view;
  else
    grad.reset();
}

}  // namespace kolo::train

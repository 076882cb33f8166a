// The first step of a GradientExchange: ranks check that they train the same parameters, agree on
// the order of gradients and on buckets, and make room for them.
#include <torch/torch.h>

#include <utility>

#include "train/dtype.h"
#include "train/gradient_exchange.h"

namespace kolo::train {

runtime::StepPlan GradientExchange::plan(Communicator& communicator) {
  outside_of_backward();  // of the first step, whose gradients mark nothing as ready
  runtime::check_same_parameters(communicator, infos_);
  agree_on_sparse(communicator);
  order_ = runtime::agree_on_order(communicator, infos_.size(), std::move(order_));
  plan_ = make_bucket_plan(infos_, order_, options_.rules);
  try {
    make_buckets(communicator);
  } catch (...) {  // there is no memory for them, and no plan then
    buckets_.clear();
    missing_.clear();
    plan_ = {};
    throw;
  }
  put_residuals(communicator);
  if (planned_) planned_(communicator);
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    if (options_.share != nullptr) continue;  // they are in their places already
    if (infos_[i].is_sparse)
      used_[i] = parameters_[i].grad().defined();
    else
      collect(i);
  }
  if (measures_norms_)
    for (GradientBucket& bucket : buckets_)
      local_squared_ += torch::dot(bucket.flat, bucket.flat).item<double>();
  return step_plan();
}

/// A parameter is sparse for all once its gradient is on one.
void GradientExchange::agree_on_sparse(Communicator& communicator) {
  if (options_.sparse_as_dense || !options_.uses_hooks || options_.share != nullptr) return;
  std::vector<std::uint8_t> sparse(infos_.size());
  for (std::size_t i = 0; i < infos_.size(); ++i) {
    const torch::Tensor& grad = parameters_[i].grad();
    sparse[i] = grad.defined() && grad.is_sparse() ? 1 : 0;
  }
  communicator.allreduce(std::span(sparse), ReduceOp::max);
  for (std::size_t i = 0; i < infos_.size(); ++i) infos_[i].is_sparse = sparse[i] != 0;
}

void GradientExchange::change_bucket_size(std::size_t bytes) {
  torch::NoGradGuard no_grad;
  const std::vector<GradientBucket> old = std::move(buckets_);
  std::vector<torch::Tensor> places;
  for (const Parameter& state : states_) places.push_back(state.view);
  options_.rules.bucket_bytes = bytes;
  plan_ = make_bucket_plan(infos_, order_, options_.rules);
  make_buckets(pipeline_->communicator());
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (places[i].defined()) states_[i].view.copy_(places[i]);
  pipeline_->set_plan(step_plan());
}

void GradientExchange::make_buckets(Communicator& communicator) {
  torch::NoGradGuard no_grad;
  buckets_.clear();
  reducer_->forget();
  missing_.clear();
  for (std::size_t b = 0; b < plan_.buckets.size(); ++b) {
    const auto& planned = plan_.buckets[b];
    GradientBucket bucket;
    bucket.plan = &planned;
    const std::size_t places = options_.share != nullptr ? options_.share->places() : 1;
    bucket.memory =
        allocate(communicator, (places - 1) * comm::block_stride(planned.count, planned.type) +
                                   planned.count * size_of(planned.type));
    const auto flats = places_over(bucket.memory, places, planned.count, scalar_type(planned.type));
    bucket.flat = flats.front();
    for (const auto& [index, offset] : planned.members) {
      const torch::Tensor& parameter = parameters_[index];
      Parameter& state = states_[index];
      // Memory of other devices, and layouts with holes, come and go by copies.
      state.is_staged = !parameter.is_cpu() || !parameter.is_non_overlapping_and_dense();
      state.bucket = b;
      const auto view_in = [&,
                            start = static_cast<std::int64_t>(offset)](const torch::Tensor& flat) {
        const torch::Tensor place = flat.narrow(0, start, parameter.numel());
        return state.is_staged ? place.view(parameter.sizes())
                               : place.as_strided(parameter.sizes(), parameter.strides());
      };
      state.view = view_in(bucket.flat);
      bucket.views.push_back(state.view);
      if (options_.share == nullptr) continue;
      const std::vector<torch::Tensor> before = std::move(state.places);
      state.places.clear();
      for (const torch::Tensor& flat : flats) {
        state.places.push_back(view_in(flat));
        if (!before.empty()) state.places.back().copy_(before[state.places.size() - 1]);
      }
    }
    missing_.push_back(planned.members.size());
    buckets_.push_back(std::move(bucket));
  }
}

}  // namespace kolo::train

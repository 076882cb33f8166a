#include "train/shards.h"

#include <torch/torch.h>

#include <cmath>
#include <cstring>

#include "base/errors.h"
#include "train/dtype.h"

namespace kolo::train {

bool is_elementwise(const torch::optim::Optimizer& optimizer) {
  namespace optim = torch::optim;
  return dynamic_cast<const optim::SGD*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::Adam*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::AdamW*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::RMSprop*>(&optimizer) != nullptr ||
         dynamic_cast<const optim::Adagrad*>(&optimizer) != nullptr;
}

class Shards::Reducer final : public GradientReducer {
 public:
  Reducer(Shards& shards, ReduceOp op, Scaling scaling)
      : shards_(shards), op_(op), scaling_(scaling) {}

  void reduce(Communicator& communicator, std::size_t index, GradientBucket& bucket) override {
    void* data = bucket.memory->data();
    const auto& planned = *bucket.plan;
    if (shards_.elementwise_)
      communicator.reducescatter(data, shards_.shards_[index].gradients->data(), planned.count, 1,
                                 planned.type, op_, scaling_);
    else
      communicator.allreduce(data, data, planned.count, planned.type, op_, scaling_);
  }

 private:
  Shards& shards_;
  ReduceOp op_;
  Scaling scaling_;
};

Shards::Shards(torch::optim::Optimizer& optimizer)
    : optimizer_(optimizer), elementwise_(is_elementwise(optimizer)) {
  // Adagrad makes its state when it is constructed, and only there.
  const bool is_fresh = optimizer.state().empty() ||
                        dynamic_cast<const torch::optim::Adagrad*>(&optimizer) != nullptr;
  if (!is_fresh)
    throw_error(ErrorCode::failed_precondition,
                "shard_optimizer_state: the optimizer has state already; wrap it before its first "
                "step");
}

std::unique_ptr<GradientReducer> Shards::make_reducer(ReduceOp op, Scaling scaling) {
  return std::make_unique<Reducer>(*this, op, scaling);
}

void Shards::take_over(Communicator& communicator, GradientExchange& gradients) {
  torch::NoGradGuard no_grad;
  const auto& plan = gradients.buckets_planned();
  auto& groups = optimizer_.param_groups();
  std::vector<std::vector<torch::Tensor>> own(groups.size());
  shards_.clear();
  for (const auto& planned : plan.buckets) {
    Shard shard;
    shard.type = planned.type;
    shard.values = allocate(communicator, planned.count * size_of(planned.type));
    shard.flat = tensor_over(shard.values, planned.count, scalar_type(planned.type));
    for (const auto& [index, offset] : planned.members) {
      torch::Tensor parameter = gradients.parameters()[index];
      if (!parameter.is_cpu() || !parameter.is_non_overlapping_and_dense())
        throw_error(ErrorCode::unsupported,
                    "shard_optimizer_state: parameters must be dense and in main memory");
      torch::Tensor place =
          shard.flat.narrow(0, static_cast<std::int64_t>(offset), parameter.numel())
              .as_strided(parameter.sizes(), parameter.strides());
      place.copy_(parameter);
      parameter.set_data(place);
    }
    auto& group = own[static_cast<std::size_t>(planned.optimizer_group)];
    if (elementwise_)
      take_slice(communicator, shard, group);
    else
      take_whole(communicator, shard, planned, gradients, group);
    shards_.push_back(std::move(shard));
  }
  for (std::size_t g = 0; g < groups.size(); ++g) groups[g].params() = own[g];
  if (dynamic_cast<torch::optim::Adagrad*>(&optimizer_) == nullptr) return;
  optimizer_.state().clear();
  for (auto& group : groups) {
    const auto& options = static_cast<const torch::optim::AdagradOptions&>(group.options());
    for (const auto& part : group.params()) {
      auto state = std::make_unique<torch::optim::AdagradParamState>();
      state->step(0);
      state->sum(torch::full_like(part, options.initial_accumulator_value()));
      optimizer_.state()[c10::guts::to_string(part.unsafeGetTensorImpl())] = std::move(state);
    }
  }
}

void Shards::take_slice(Communicator& communicator, Shard& shard,
                        std::vector<torch::Tensor>& group) {
  const auto count = static_cast<std::size_t>(shard.flat.numel());
  const auto ranks = static_cast<std::size_t>(communicator.size());
  for (std::size_t r = 0; r <= ranks; ++r) shard.bounds.push_back(count / ranks * r);
  const auto length = static_cast<std::int64_t>(count / ranks);
  torch::Tensor part = shard.flat.narrow(0, length * communicator.rank(), length).detach();
  part.set_requires_grad(true);
  shard.gradients = allocate(communicator, static_cast<std::size_t>(length) * size_of(shard.type));
  part.mutable_grad() =
      tensor_over(shard.gradients, static_cast<std::size_t>(length), scalar_type(shard.type));
  shard.own.push_back(part);
  group.push_back(part);
}

void Shards::take_whole(Communicator& communicator, Shard& shard, const BucketPlan::Bucket& planned,
                        GradientExchange& gradients, std::vector<torch::Tensor>& group) {
  // A rank's members follow each other, so that its part is one piece; each begins a new part when
  // the one before has its share.
  const auto ranks = static_cast<std::size_t>(communicator.size());
  shard.bounds.assign(ranks + 1, planned.count);
  shard.bounds[0] = 0;
  std::size_t owner = 0;
  for (const auto& [index, offset] : planned.members) {
    while (owner + 1 < ranks && offset >= planned.count * (owner + 1) / ranks)
      shard.bounds[++owner] = offset;
    if (static_cast<int>(owner) != communicator.rank()) continue;
    group.push_back(gradients.parameters()[index]);
    shard.own.push_back(group.back());
  }
}

void Shards::share(Communicator& communicator) {
  const auto me = static_cast<std::size_t>(communicator.rank());
  for (Shard& shard : shards_) {
    const std::size_t element = size_of(shard.type);
    communicator.allgather(
        shard.values->data() + shard.bounds[me] * element, shard.bounds[me + 1] - shard.bounds[me],
        1, shard.type,
        [&](std::span<const std::size_t>) { return static_cast<void*>(shard.values->data()); });
  }
}

double Shards::norm(Communicator& communicator) {
  double sum = 0;
  for (const Shard& shard : shards_)
    for (const torch::Tensor& part : shard.own)
      if (part.grad().defined()) sum += std::pow(part.grad().norm().item<double>(), 2);
  return std::sqrt(communicator.allreduce(sum, ReduceOp::sum));
}

void Shards::scale_gradients(double factor) {
  torch::NoGradGuard no_grad;
  for (const Shard& shard : shards_)
    for (const torch::Tensor& part : shard.own)
      if (part.grad().defined()) part.grad().mul_(factor);
}

}  // namespace kolo::train

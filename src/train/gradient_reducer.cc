// A reducer whose work is one allreduce says so by as_allreduce(), and whoever runs the step can
// then do it without calling reduce(). Adasum is never one: it weighs tensors as wholes, so each
// member of the bucket is reduced by itself. HalfReducer copies the bucket into a 16-bit twin,
// reduces the twin in place and copies it back. The twins are kept from step to step in a deque,
// because each one points to a plan inside of itself and must not move when others are added.
// Tensors over the communicator's memory share its ownership, so the memory outlives the last of
// them.
#include "train/gradient_reducer.h"

#include <torch/torch.h>

#include "base/errors.h"
#include "comm/tree_allreduce.h"
#include "train/dtype.h"

namespace kolo::train {
namespace {

/// Where it lies, in its own type.
class PlainReducer final : public GradientReducer {
 public:
  PlainReducer(ReduceOp op, Scaling scaling) : op_(op), scaling_(scaling) {}

  [[nodiscard]] std::optional<runtime::StepAllreduce> as_allreduce(
      const GradientBucket& bucket) const override {
    if (op_ == ReduceOp::adasum) return std::nullopt;
    return runtime::StepAllreduce{bucket.memory->data(), bucket.plan->count, bucket.plan->type, op_,
                                  scaling_};
  }

  void reduce(Communicator& communicator, std::size_t, GradientBucket& bucket) override {
    if (op_ != ReduceOp::adasum) {
      void* data = bucket.memory->data();
      communicator.allreduce(data, data, bucket.plan->count, bucket.plan->type, op_, scaling_);
      return;
    }
    // Adasum weighs whole tensors against each other.
    for (std::size_t i = 0; i < bucket.plan->members.size(); ++i) {
      void* data = bucket.views[i].data_ptr();
      communicator.allreduce(data, data, static_cast<std::size_t>(bucket.views[i].numel()),
                             bucket.plan->type, op_, scaling_);
    }
  }

 private:
  ReduceOp op_;
  Scaling scaling_;
};

/// Blocks of virtual ranks. Where the tree is the usual order of the ranks, it is an allreduce like
/// any other.
class TreeReducer final : public GradientReducer {
 public:
  TreeReducer(const comm::TreeOrder& order, double postscale)
      : order_(order), postscale_(postscale) {}

  [[nodiscard]] std::optional<runtime::StepAllreduce> as_allreduce(
      const GradientBucket& bucket) const override {
    return runtime::StepAllreduce{
        bucket.memory->data(), bucket.plan->count,
        bucket.plan->type,     ReduceOp::sum,
        {1.0, postscale_},     order_.is_plain(bucket.plan->type) ? nullptr : &order_};
  }

  void reduce(Communicator& communicator, std::size_t, GradientBucket& bucket) override {
    const auto [data, count, type, op, scaling, tree] = *as_allreduce(bucket);
    if (tree != nullptr)
      comm::tree_allreduce(communicator, data, count, type, postscale_, *tree);
    else
      communicator.allreduce(data, data, count, type, op, scaling);
  }

 private:
  const comm::TreeOrder& order_;
  double postscale_;
};

/// In 16 bits; sums are made in float32 on the way.
class HalfReducer final : public GradientReducer {
 public:
  HalfReducer(torch::ScalarType type, ReduceOp op, Scaling scaling)
      : type_(type), plain_(op, scaling) {}

  void reduce(Communicator& communicator, std::size_t index, GradientBucket& bucket) override {
    if (size_of(bucket.plan->type) <= 2 || !bucket.flat.is_floating_point())
      return plain_.reduce(communicator, index, bucket);
    if (halves_.size() <= index) halves_.resize(index + 1);
    Half& half = halves_[index];
    if (half.bucket.plan == nullptr) {
      half.plan = *bucket.plan;
      half.plan.type = data_type(type_);
      half.bucket.memory = allocate(communicator, half.plan.count * 2);
      half.bucket.flat = tensor_over(half.bucket.memory, half.plan.count, type_);
      half.bucket.plan = &half.plan;
      for (std::size_t i = 0; i < half.plan.members.size(); ++i)
        half.bucket.views.push_back(half.bucket.flat.narrow(
            0, static_cast<std::int64_t>(half.plan.members[i].offset), bucket.views[i].numel()));
    }
    half.bucket.flat.copy_(bucket.flat);
    plain_.reduce(communicator, index, half.bucket);
    bucket.flat.copy_(half.bucket.flat);
  }
  void forget() override { halves_.clear(); }

 private:
  struct Half {
    BucketPlan::Bucket plan;
    GradientBucket bucket;
  };
  torch::ScalarType type_;
  PlainReducer plain_;
  std::deque<Half> halves_;
};

}  // namespace

torch::Tensor part_of(const torch::Tensor& flat, const GradientBucket& bucket, std::size_t member) {
  return flat.narrow(0, static_cast<std::int64_t>(bucket.plan->members[member].offset),
                     bucket.views[member].numel());
}

SharedBytes allocate(Communicator& communicator, std::size_t bytes) {
  return std::make_shared<Buffer<std::byte>>(
      communicator.allocate<std::byte>(std::max<std::size_t>(bytes, 1)));
}

torch::Tensor tensor_over(const SharedBytes& memory, std::size_t count, torch::ScalarType type) {
  return places_over(memory, 1, count, type).front();
}

std::vector<torch::Tensor> places_over(const SharedBytes& memory, std::size_t places,
                                       std::size_t count, torch::ScalarType type) {
  const std::size_t stride = comm::block_stride(count, data_type(type));
  std::vector<torch::Tensor> all;
  for (std::size_t p = 0; p < places; ++p)
    all.push_back(torch::from_blob(
        memory->data() + p * stride, {static_cast<std::int64_t>(count)}, [memory](void*) {},
        torch::TensorOptions().dtype(type)));
  return all;
}

std::unique_ptr<GradientReducer> make_tree_reducer(const comm::TreeOrder& order, double postscale) {
  return std::make_unique<TreeReducer>(order, postscale);
}

std::unique_ptr<GradientReducer> make_gradient_reducer(const Compression& compression, ReduceOp op,
                                                       Scaling scaling) {
  using Kind = Compression::Kind;
  const bool is_lossy = compression.kind == Kind::power_sgd || compression.kind == Kind::top_k;
  if (is_lossy && op == ReduceOp::adasum)
    throw_error(ErrorCode::invalid_argument,
                "DistributedOptimizer: adasum needs whole tensors, so this compression is not "
                "possible; use none, fp16 or bf16");
  switch (compression.kind) {
    case Kind::none: break;
    case Kind::fp16: return std::make_unique<HalfReducer>(torch::kFloat16, op, scaling);
    case Kind::bf16: return std::make_unique<HalfReducer>(torch::kBFloat16, op, scaling);
    case Kind::power_sgd: return make_power_sgd_reducer(compression.rank, op);
    case Kind::top_k: return make_top_k_reducer(compression.ratio, op);
  }
  return std::make_unique<PlainReducer>(op, scaling);
}

}  // namespace kolo::train

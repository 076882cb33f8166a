// Ways to reduce one bucket of gradients: uncompressed, in 16 bits, by low-rank factors (PowerSGD),
// or by its largest entries (top-k).
#pragma once

#include <torch/torch.h>

#include <memory>
#include <vector>

#include "comm/tree_order.h"
#include "engine/bucket_plan.h"
#include "engine/step_work.h"
#include "kolo/communicator.h"
#include "kolo/torch/distributed_optimizer.h"
#include "train/optim/serialization.h"

namespace kolo::train {

using runtime::BucketPlan;
using runtime::BucketRules;
using runtime::ParameterInfo;

using SharedBytes = std::shared_ptr<Buffer<std::byte>>;

/// A bucket in memory of the communicator, which lives as long as any tensor in it.
struct GradientBucket {
  SharedBytes memory;
  torch::Tensor flat;                ///< all of it
  std::vector<torch::Tensor> views;  ///< each member, in the shape and strides of its parameter
  const BucketPlan::Bucket* plan = nullptr;
};

inline constexpr const char* kKeptError = "error";

class GradientReducer {
 public:
  virtual ~GradientReducer() = default;
  /// Collective. `index` tells the buckets of one plan apart, for what is kept between steps.
  virtual void reduce(Communicator& communicator, std::size_t index, GradientBucket& bucket) = 0;
  /// If it is nothing but an allreduce of the bucket: which.
  [[nodiscard]] virtual std::optional<runtime::StepAllreduce> as_allreduce(
      const GradientBucket&) const {
    return std::nullopt;
  }
  /// The plan has changed: what was kept belongs to other buckets.
  virtual void forget() {}

  // --- what is kept between steps, for checkpoints ---
  /// Makes room for it, as it is before the first step. Not collective.
  virtual void prepare(Communicator&, std::size_t /*index*/, GradientBucket&) {}
  /// What there is of one member of a bucket: views of it, by name. "error" is this rank's own;
  /// anything else is the same on every rank.
  [[nodiscard]] virtual NamedTensors kept(std::size_t /*index*/, const GradientBucket&,
                                          std::size_t /*member*/) const {
    return {};
  }
};

std::unique_ptr<GradientReducer> make_gradient_reducer(const Compression& compression, ReduceOp op,
                                                       Scaling scaling);
/// With virtual ranks: the buckets' blocks in the order of the tree, times `postscale`. The order
/// must outlive it.
std::unique_ptr<GradientReducer> make_tree_reducer(const comm::TreeOrder& order, double postscale);
std::unique_ptr<GradientReducer> make_power_sgd_reducer(int rank, ReduceOp op);
std::unique_ptr<GradientReducer> make_top_k_reducer(double ratio, ReduceOp op);

/// What belongs to a member in a tensor laid out as its bucket is.
[[nodiscard]] torch::Tensor part_of(const torch::Tensor& flat, const GradientBucket& bucket,
                                    std::size_t member);

SharedBytes allocate(Communicator& communicator, std::size_t bytes);
/// A flat tensor over memory of the communicator, which it keeps alive.
torch::Tensor tensor_over(const SharedBytes& memory, std::size_t count, torch::ScalarType type);
/// As many of them as fit at the strides of blocks (comm/tree_order.h).
std::vector<torch::Tensor> places_over(const SharedBytes& memory, std::size_t places,
                                       std::size_t count, torch::ScalarType type);

}  // namespace kolo::train

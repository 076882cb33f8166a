// What a StepPipeline runs: a plan, which is the same on every rank, and the work behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/tree_order.h"
#include "kolo/communicator.h"

namespace kolo::runtime {

/// An allreduce in place of memory that the communicator allocated (not adasum).
/// With a tree: of blocks, in its order; op is sum, and there is no prescale.
struct StepAllreduce {
  void* data = nullptr;
  std::size_t count = 0;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::average;
  Scaling scaling{};
  const comm::TreeOrder* tree = nullptr;
};

struct StepItem {
  std::string name;       ///< for the timeline
  std::size_t bytes = 0;  ///< for the timeline
  /// Set if the item is nothing but this; on all ranks or on none.
  std::optional<StepAllreduce> allreduce{};
};

struct StepPlan {
  /// Equal on ranks that have the same plan; 0 while there is none.
  std::uint64_t fingerprint = 0;
  std::vector<StepItem> items{};
};

/// Its members are called by one thread at a time, in the same order on every rank.
class StepWork {
 public:
  virtual ~StepWork() = default;
  /// Agrees on a plan with the other ranks; called in the first step. Collective.
  virtual StepPlan plan(Communicator& communicator) = 0;
  /// Does one item, unless the pipeline does its allreduce without help. Collective.
  virtual void run(Communicator& communicator, std::size_t item) = 0;
  /// This rank has joined: what it brings to the coming step is zero. False if the work cannot do
  /// without a rank; the step then fails on all of them.
  virtual bool bring_zeros() = 0;
};

}  // namespace kolo::runtime

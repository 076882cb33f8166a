// The gradients of an optimizer in buckets of shared memory, reduced while backward runs.
//
// The Python side tells, parameter by parameter, that a gradient is complete and where it lies
// (arrived). It is copied to its place in a bucket, unless it lies there already; when all members
// of a bucket are there the pipeline may reduce it. finish() does what is left.
//
// In the first step there is no plan yet: gradients are only noted, the ranks agree on buckets at
// its end, and everything is reduced in finish(). Compare src/train/gradient_exchange.h, which does
// the same with libtorch's own tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/bucket_plan.h"
#include "engine/step_pipeline.h"
#include "memory.h"

namespace kolo::python {

class GradientBuckets final : public runtime::StepWork {
 public:
  struct Options {
    ReduceOp op = ReduceOp::average;
    Scaling scaling{};
    ProcessSetId process_set = kGlobalProcessSet;
    std::size_t bucket_bytes = 0;  ///< 0: KOLO_BUCKET_BYTES, else 4 MiB
  };
  /// Collective over the process set.
  GradientBuckets(std::vector<runtime::ParameterInfo> parameters, Options options);
  ~GradientBuckets() override;

  /// The gradient of a parameter is complete and lies at `data`, dense and in the layout of its
  /// place; null: it is there already. Before the plan exists, only the order is noted.
  void arrived(std::size_t parameter, const void* data);
  /// Before the first finish(): where the gradients are, null for none. `is_sparse[i]`: it is in no
  /// bucket, on any rank.
  void set_first(std::vector<const void*> gradients, const std::vector<bool>& is_sparse);
  /// Those that have not arrived count as zero. Afterwards is_used() says whether any rank had one.
  void finish();

  [[nodiscard]] bool has_plan() const noexcept { return plan_.fingerprint != 0; }
  [[nodiscard]] bool is_used(std::size_t parameter) const { return used_[parameter] != 0; }
  [[nodiscard]] bool is_sparse(std::size_t parameter) const {
    return parameters_[parameter].is_sparse;
  }
  [[nodiscard]] std::size_t size() const noexcept { return parameters_.size(); }
  [[nodiscard]] const std::vector<Memory>& buckets() const noexcept { return memories_; }
  /// Bucket and offset in bytes.
  [[nodiscard]] std::pair<std::size_t, std::size_t> place_of(std::size_t parameter) const;

  // --- StepWork ---------------------------------------------------------------------------------
  runtime::StepPlan plan(Communicator& communicator) override;
  void run(Communicator& communicator, std::size_t item) override;
  bool bring_zeros() override;

 private:
  struct Place {
    std::size_t bucket = 0;
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    bool has_arrived = false;
  };

  runtime::StepPlan make_plan(Communicator& communicator);
  void put(std::size_t parameter, const void* data);
  void begin_step();

  std::vector<runtime::ParameterInfo> parameters_;
  Options options_;
  runtime::BucketPlan plan_;
  std::vector<Memory> memories_;
  std::vector<Place> places_;         // by parameter
  std::vector<std::size_t> missing_;  // by bucket: members that have not arrived
  std::vector<std::uint8_t> used_;    // by parameter: has a gradient here; after a step: anywhere
  std::vector<std::uint32_t> order_;  // in which gradients came in the first step
  std::vector<const void*> first_;    // gradients of the first step
  bool brings_zeros_ = false;
  std::unique_ptr<runtime::StepPipeline> pipeline_;
};

}  // namespace kolo::python

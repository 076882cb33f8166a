// Exchanges the gradients of a set of parameters between the ranks, bucket by bucket.
//
// Life of a gradient: backward leaves it with its parameter; a hook copies it to its place in a
// bucket (or finds it there, when backward added to what lay there); the bucket is reduced once all
// its members have come; afterwards the parameter's gradient is that place in the bucket.
// One copy per gradient is less work than letting backward add to a bucket that was set to zero
// before: that reads the bucket too and writes it twice.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "engine/bucket_plan.h"
#include "engine/step_pipeline.h"
#include "kolo/torch/distributed_optimizer.h"
#include "train/gradient_reducer.h"
#include "train/leaf_averages.h"
#include "train/step_tuner.h"
#include "train/virtual_share.h"

namespace kolo::train {

struct ExchangeOptions {
  int passes = 1;
  bool sparse_as_dense = false;
  bool uses_hooks = true;  ///< otherwise everything happens in finish()
  BucketRules rules;
  ReduceOp op = ReduceOp::average;
  bool autotune = false;
  std::string autotune_log;
  /// With virtual ranks; must outlive the exchange.
  const VirtualShare* share = nullptr;
  double leaf_scale = 1.0;  ///< with virtual ranks: factor of each one's gradient
};

class GradientExchange final : public runtime::StepWork {
 public:
  /// `parameters[i]` belongs to `infos[i]`. Collective over the set.
  GradientExchange(Engine& engine, ProcessSetId set, std::vector<torch::Tensor> parameters,
                   std::vector<ParameterInfo> infos, std::unique_ptr<GradientReducer> reducer,
                   ExchangeOptions options);
  ~GradientExchange() override;

  /// Reduces what has not been reduced in backward. Afterwards the gradients are the reduced ones.
  void finish();
  /// Whether backward has left something since the last finish().
  [[nodiscard]] bool has_gradients() const noexcept {
    outside_of_backward();
    return passes_seen_ > 0;
  }
  void set_passes(int passes) { options_.passes = passes; }
  [[nodiscard]] bool is_tuning() const noexcept { return is_tuning_; }
  void measure_norms(bool on) noexcept { measures_norms_ = on; }
  [[nodiscard]] DistributedOptimizer::Norms norms() const noexcept { return norms_; }

  /// What the reducer keeps between steps of this rank, for checkpoints; "" if nothing.
  [[nodiscard]] std::string residuals() const;
  /// What each rank of a run had. With another number of ranks everybody gets an equal share of
  /// what was left out. Before the first step or between steps.
  void load_residuals(const std::vector<std::string>& of_ranks);

  // --- virtual ranks (gradient_leaves.cc) --------------------------------------------------------
  /// This rank's virtual ranks come in order, each with its backward passes, then finish().
  void begin_leaf(int virtual_rank);
  [[nodiscard]] LeafAverages& averages() noexcept { return *averages_; }

  [[nodiscard]] runtime::StepPipeline& pipeline() noexcept { return *pipeline_; }
  [[nodiscard]] const BucketPlan& buckets_planned() const noexcept { return plan_; }
  [[nodiscard]] std::vector<GradientBucket>& buckets() noexcept { return buckets_; }
  [[nodiscard]] const std::vector<torch::Tensor>& parameters() const noexcept {
    return parameters_;
  }
  /// After finish(): whether any rank had a gradient of it.
  [[nodiscard]] bool is_used(std::size_t parameter) const {
    outside_of_backward();
    return used_[parameter] != 0;
  }
  /// Called once, when the plan is made. Collective.
  void when_planned(std::function<void(Communicator&)> action) { planned_ = std::move(action); }

  // --- StepWork ---------------------------------------------------------------------------------
  runtime::StepPlan plan(Communicator& communicator) override;
  void run(Communicator& communicator, std::size_t item) override;
  bool bring_zeros() override;
  /// For a reducer that cannot do without a rank.
  void refuse_zeros() noexcept { refuses_zeros_ = true; }

 private:
  /// A shared pointer in libtorch 1.13, an intrusive one in 2.13.
  using Accumulator =
      decltype(torch::autograd::impl::grad_accumulator(std::declval<const torch::Tensor&>()));

  struct Parameter {
    std::size_t bucket = 0;
    torch::Tensor view;      // its place in the bucket
    bool is_staged = false;  // the gradient cannot be that place (another device or layout)
    int passes = 0;          // since the last finish(), or of the virtual rank under way
    std::vector<torch::Tensor> places;  // with virtual ranks; the first is `view`
    bool is_folded = false;             // the virtual rank under way is in the places
    std::uintptr_t hook = 0;
    Accumulator keeps_accumulator;
  };

  class CopyWatch;

  /// Hooks run inside of backward(), and the owner waits for that. Outside of it the owner, or the
  /// thread that stands in for it after a join, is alone with what hooks change, and needs no lock.
  void outside_of_backward() const noexcept KOLO_ASSERTS(mutex_) {}

  void on_gradient(std::size_t index);
  /// Brings the gradient to its place; zero if there is none.
  void collect(std::size_t index) KOLO_REQUIRES(mutex_);
  void hand_back(std::size_t index) KOLO_REQUIRES(mutex_);
  /// Adds the gradient of the virtual rank under way to the places.
  void fold(std::size_t index) KOLO_REQUIRES(mutex_);
  void end_leaf() KOLO_REQUIRES(mutex_);
  /// Before the reduction. Throws failed_precondition if there are virtual ranks left.
  void end_leaves() KOLO_REQUIRES(mutex_);
  /// Whether the gradients that come now are the last of the step.
  [[nodiscard]] bool is_last_leaf() const noexcept {
    return options_.share == nullptr || (leaf_ && *leaf_ + 1 == options_.share->mine().size());
  }
  void agree_on_sparse(Communicator& communicator);
  void make_buckets(Communicator& communicator) KOLO_REQUIRES(mutex_);
  /// The buckets, and an item after them: who used what, and the sparse gradients.
  [[nodiscard]] runtime::StepPlan step_plan() const KOLO_REQUIRES(mutex_);
  [[nodiscard]] std::string name_of(std::size_t bucket) const;
  /// Calls action(its name in checkpoints, tensor) for all that the reducer keeps.
  void each_residual(
      const std::function<void(const std::string&, const torch::Tensor&)>& action) const;
  void put_residuals(Communicator& communicator);
  /// Between steps, on all ranks alike.
  void apply(const StepSettings& settings) KOLO_REQUIRES(mutex_);
  /// The gradients move along.
  void change_bucket_size(std::size_t bytes) KOLO_REQUIRES(mutex_);
  void tune() KOLO_REQUIRES(mutex_);
  void end_step(Communicator& communicator) KOLO_REQUIRES(mutex_);
  void gather_sparse(Communicator& communicator, std::size_t index);

  std::vector<torch::Tensor> parameters_;
  std::vector<ParameterInfo> infos_;
  std::unique_ptr<GradientReducer> reducer_;
  ExchangeOptions options_;
  std::unique_ptr<runtime::StepPipeline> pipeline_;

  // What hooks change. Those of several devices may run at once.
  Mutex mutex_;
  std::vector<Parameter> states_ KOLO_GUARDED_BY(mutex_);
  /// In which gradients came; once there is a plan, the agreed one.
  std::vector<std::uint32_t> order_ KOLO_GUARDED_BY(mutex_);
  /// By bucket: members that have not come.
  std::vector<std::size_t> missing_ KOLO_GUARDED_BY(mutex_);
  int passes_seen_ KOLO_GUARDED_BY(mutex_) = 0;
  /// By parameter: has a gradient here; after a step: anywhere.
  std::vector<std::uint8_t> used_ KOLO_GUARDED_BY(mutex_);
  double local_squared_ KOLO_GUARDED_BY(mutex_) = 0;  // of the step under way

  // What changes outside of backward only. Hooks and the pipeline's helper read it.
  std::optional<std::size_t> leaf_;         // with virtual ranks: the one under way
  std::unique_ptr<LeafAverages> averages_;  // with virtual ranks
  BucketPlan plan_;
  std::vector<GradientBucket> buckets_;
  std::function<void(Communicator&)> planned_;
  std::optional<StepTuner> tuner_;  // on the first rank
  std::chrono::steady_clock::time_point last_step_;
  /// What the first rank says at the end of a step.
  struct Wish {
    StepSettings settings;
    bool is_new = false;
    bool is_last = false;
  };
  Wish wish_;
  bool is_tuning_ = false;
  NamedTensors loaded_residuals_;  // until there is a plan
  bool brings_zeros_ = false;
  bool refuses_zeros_ = false;
  bool measures_norms_ = false;
  DistributedOptimizer::Norms norms_;
};

}  // namespace kolo::train

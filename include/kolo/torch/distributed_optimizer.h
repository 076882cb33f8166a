// An optimizer whose gradients are averaged over all ranks while backward runs.
//
//   torch::optim::SGD sgd(model->parameters(), lr);
//   kolo::DistributedOptimizer optimizer(sgd, model->named_parameters());
//   …
//   optimizer.zero_grad();
//   loss.backward();
//   optimizer.step();
#pragma once

#include <torch/torch.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kolo/engine.h"
#include "kolo/random.h"

namespace kolo {

/// How gradients are sent. Lossy forms keep what they left out and add it to the next gradient
/// (error feedback), so nothing is lost for good.
struct Compression {
  enum class Kind { none, fp16, bf16, power_sgd, top_k };
  Kind kind = Kind::none;
  int rank = 4;         ///< PowerSGD: columns of the factors
  double ratio = 0.01;  ///< top-k: share of the entries that are sent

  static Compression none() { return {}; }
  static Compression fp16() { return {Kind::fp16, 0, 0}; }
  static Compression bf16() { return {Kind::bf16, 0, 0}; }
  static Compression power_sgd(int rank = 4) { return {Kind::power_sgd, rank, 0}; }
  static Compression top_k(double ratio = 0.01) { return {Kind::top_k, 0, ratio}; }
};

struct DistributedOptimizerOptions {
  /// average, sum, or adasum. With adasum each rank steps by itself and the changes of the
  /// parameters are combined (Maleki et al., "Scaling distributed training with adaptive
  /// summation", 2020).
  ReduceOp op = ReduceOp::average;

  Compression compression{};

  /// Gradients are summed over this many backward passes before they are reduced.
  int backward_passes_per_step = 1;

  /// With average: gradients are divided by this before the reduction and multiplied after it, to
  /// shift where the range of 16-bit types is used.
  double gradient_predivide_factor = 1.0;

  /// Parameters that are reduced together; those not listed form buckets by themselves.
  std::vector<std::vector<torch::Tensor>> groups{};
  /// Or: all parameters in this many groups of about equal size. 0: buckets by size.
  int num_groups = 0;

  /// Sparse gradients become dense ones. Otherwise their entries are gathered from all ranks.
  bool sparse_as_dense = false;

  ProcessSetId process_set = kGlobalProcessSet;

  /// Gradients are scaled down in step() so that the norm of all of them is at most this. 0: not.
  double clip_global_norm = 0;

  /// Each rank keeps the optimizer's state of its share of the parameters alone and updates those
  /// (ZeRO stage 1; Rajbhandari et al., 2020). Optimizers that treat each element by itself (SGD,
  /// Adam, AdamW, RMSprop, Adagrad) are shared out evenly by element, others by whole parameters.
  /// State that it has already is shared out. Not with join(), adasum, compression that is lossy,
  /// or sparse gradients.
  bool shard_optimizer_state = false;

  /// Size of the buckets in which gradients are reduced. 0: KOLO_BUCKET_BYTES, else 4 MiB.
  std::size_t bucket_bytes = 0;

  /// Tries other sizes of buckets and switch points (who reduces buckets during backward; the size
  /// up to which an allreduce between hosts takes one trip) during the first steps, ends by itself,
  /// and stays with the given ones unless others were faster twice. Not with
  /// shard_optimizer_state, PowerSGD or top-k. Also: KOLO_AUTOTUNE=1.
  bool autotune = false;
  /// The first rank writes there what was tried (CSV). Empty: KOLO_AUTOTUNE_LOG, else nowhere.
  std::string autotune_log{};

  /// The same bits whatever the number of ranks: each step consists of this many micro-batches,
  /// one per virtual rank, which the ranks share out (docs/elastic.md). Gradients are added in a
  /// tree over virtual ranks, and op average divides by their number. 0: KOLO_VIRTUAL_RANKS, else
  /// none. Every rank computes with the same number of threads; where nobody has chosen one, with
  /// one thread. Not with adasum, compression, shard_optimizer_state, autotune or join(); sparse
  /// gradients need sparse_as_dense.
  int virtual_ranks = 0;
  /// With virtual ranks: what their random streams depend on, besides virtual rank and step.
  std::uint64_t seed = 0;

  /// The engine to work with. Null: the default one.
  Engine* engine = nullptr;
};

/// Wraps any optimizer. All members are called by the thread that trains; construction and the
/// first step are collective over the process set. With one rank it does nothing but step.
///
/// Gradients live in buckets of the communicator's own memory from the first step on: `grad()` of
/// a parameter is a view of its bucket after synchronize(). Which parameters share a bucket, and in
/// which order buckets are reduced, is agreed at the first step, in the order in which backward
/// reached them on the first rank. A parameter that backward does not reach counts as zero on that
/// rank; if no rank reached it, its gradient stays as it was.
class DistributedOptimizer {
 public:
  using Options = DistributedOptimizerOptions;

  /// `optimizer` must outlive this. `named_parameters` gives names for messages and must, if not
  /// empty, cover every parameter of the optimizer. Throws invalid_argument.
  explicit DistributedOptimizer(
      torch::optim::Optimizer& optimizer,
      const torch::OrderedDict<std::string, torch::Tensor>& named_parameters =
          torch::OrderedDict<std::string, torch::Tensor>(),
      Options options = {});
  DistributedOptimizer(torch::optim::Optimizer& optimizer, Options options)
      : DistributedOptimizer(optimizer, torch::OrderedDict<std::string, torch::Tensor>(),
                             std::move(options)) {}
  ~DistributedOptimizer();
  DistributedOptimizer(const DistributedOptimizer&) = delete;
  DistributedOptimizer& operator=(const DistributedOptimizer&) = delete;

  /// synchronize(), unless that was done, then the optimizer's step. A closure is called first,
  /// once, and its loss returned.
  torch::Tensor step(const torch::optim::Optimizer::LossClosure& closure = nullptr);

  /// Waits until all gradients are reduced. Call it to use them before step().
  void synchronize();

  /// While it lives, step() does not synchronize(): for steps after a synchronize() of one's own.
  class SkipSynchronize {
   public:
    explicit SkipSynchronize(DistributedOptimizer& owner);
    ~SkipSynchronize();
    SkipSynchronize(const SkipSynchronize&) = delete;
    SkipSynchronize& operator=(const SkipSynchronize&) = delete;

   private:
    DistributedOptimizer& owner_;
  };
  [[nodiscard]] SkipSynchronize skip_synchronize() { return SkipSynchronize(*this); }

  /// Gradients become undefined, or zero. Throws failed_precondition between backward and step.
  void zero_grad(bool set_to_none = true);

  /// Scales all gradients so that their norm is at most `max_norm`; synchronizes first. Returns the
  /// norm before. With a sharded optimizer it works on the shares.
  double clip_grad_norm(double max_norm);

  void set_backward_passes_per_step(int passes);

  // --- virtual ranks ----------------------------------------------------------------------------
  //
  //   for (int v : optimizer.virtual_ranks()) {
  //     auto micro_batch = optimizer.micro_batch(v);
  //     loss_of(net, batch_of(v, optimizer.steps())).backward();
  //   }
  //   optimizer.step();

  /// Those that this rank computes in every step, ascending. Empty without virtual ranks.
  [[nodiscard]] const std::vector<int>& virtual_ranks() const noexcept;
  /// How many there are, of all ranks. 0: none.
  [[nodiscard]] int virtual_rank_count() const noexcept;

  /// While it lives, libtorch draws from the stream of the virtual rank and step; afterwards it
  /// goes on where it was before.
  class MicroBatch {
   public:
    ~MicroBatch();
    MicroBatch(const MicroBatch&) = delete;
    MicroBatch& operator=(const MicroBatch&) = delete;

    /// For draws of the program's own.
    [[nodiscard]] Random random() const { return Random(seed_); }

   private:
    friend class DistributedOptimizer;
    explicit MicroBatch(std::uint64_t seed);
    std::uint64_t seed_;
    torch::Tensor generator_before_;
  };
  /// Begins the part of a virtual rank in this step: gradients become undefined, and those of the
  /// backward passes that follow (backward_passes_per_step) are the virtual rank's. To be called
  /// for all of virtual_ranks(), in their order, before step(). A virtual rank without a backward
  /// pass brings zeros. Throws failed_precondition.
  [[nodiscard]] MicroBatch micro_batch(int virtual_rank);

  /// With every step these tensors become their averages over virtual ranks, each of which begins
  /// with the values before the step: running statistics of batch normalisation
  /// (`net->buffers()`), a loss. Integers are not averaged, but taken from one virtual rank. The
  /// same on every rank, before the first step.
  void average_with_each_step(const std::vector<torch::Tensor>& tensors);

  /// Sums over virtual ranks, in the order of the tree. `rows` has one row for each of
  /// virtual_ranks(). Collective, between steps.
  [[nodiscard]] torch::Tensor sum_over_virtual_ranks(const torch::Tensor& rows);

  /// Steps that were made, which name the random streams: to be set when a run is resumed.
  [[nodiscard]] std::uint64_t steps() const noexcept;
  void set_steps(std::uint64_t steps) noexcept;

  /// The wrapped optimizer. With shard_optimizer_state its groups hold this rank's shares.
  [[nodiscard]] torch::optim::Optimizer& optimizer() noexcept;
  [[nodiscard]] std::vector<torch::optim::OptimizerParamGroup>& param_groups() noexcept {
    return optimizer().param_groups();
  }

  /// Squared norms of this rank's own gradient and of the reduced one, of the last step: what
  /// estimates of the gradient noise scale start from. Measured when asked for before the step.
  struct Norms {
    double local_squared = 0;
    double reduced_squared = 0;
  };
  /// Throws unsupported with virtual ranks.
  void measure_norms(bool on);
  [[nodiscard]] Norms norms() const noexcept;

  /// How long this rank's part of the reductions took since the last call, over all steps, and how
  /// long it stayed in synchronize(): with what was left to reduce, and waiting for other ranks.
  struct Times {
    std::chrono::nanoseconds total{0};
    std::chrono::nanoseconds exposed{0};
    int steps = 0;
  };
  [[nodiscard]] Times take_times();

  /// For checkpoints (kolo/torch/checkpoint.h does it). The optimizer's options and state as one
  /// process would have them, on the first rank of the process set; "" on the others. Collective if
  /// the state is shared out. Throws unsupported for optimizers that are not copyable.
  [[nodiscard]] std::string gather_optimizer_state();
  /// What that gave, on every rank; the number of ranks may be another.
  void load_optimizer_state(const std::string& bytes);
  /// What compression has left out so far on this rank; "" if nothing.
  [[nodiscard]] std::string residuals() const;
  /// What residuals() gave on each rank of a run, on every rank. With another number of ranks all
  /// get an equal share; with one, nothing is compressed, and they are dropped with a warning.
  void load_residuals(const std::vector<std::string>& of_ranks);

  /// Buckets of the agreed plan; 0 before the first step.
  [[nodiscard]] std::size_t bucket_count() const noexcept;
  /// Whether autotune is still trying.
  [[nodiscard]] bool is_tuning() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Bytes of the tensors that an optimizer keeps per parameter (momenta and the like).
[[nodiscard]] std::size_t optimizer_state_bytes(const torch::optim::Optimizer& optimizer);

}  // namespace kolo

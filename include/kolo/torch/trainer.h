// Trainer: a ready-made training loop. Everything it uses can also be used without it.
//
//   kolo::Trainer trainer(net, kolo::cross_entropy, adam, {.epochs = 20, .batch_per_rank = 32});
//   trainer.metric("accuracy", kolo::accuracy)
//       .add<kolo::BroadcastCallback>()
//       .add<kolo::MetricAverageCallback>()
//       .add<kolo::ProgressBar>();
//   trainer.fit(train, &test);
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kolo/torch/checkpoint.h"
#include "kolo/torch/data.h"
#include "kolo/torch/distributed_optimizer.h"
#include "kolo/torch/rate_scheduler.h"
#include "kolo/torch/sampler.h"
#include "kolo/torch/state.h"

namespace kolo {

class Trainer;

/// Called by fit() on every rank. Callbacks run in the order in which they were added; what one
/// writes into the metrics, later ones see.
class Callback {
 public:
  virtual ~Callback() = default;
  virtual void on_train_begin(Trainer& /*trainer*/) {}
  virtual void on_epoch_begin(Trainer& /*trainer*/) {}
  /// Between backward and the optimizer's step.
  virtual void on_step(Trainer& /*trainer*/) {}
  virtual void on_step_end(Trainer& /*trainer*/, double /*loss*/) {}
  virtual void on_epoch_end(Trainer& /*trainer*/, Metrics& /*metrics*/) {}
  virtual void on_train_end(Trainer& /*trainer*/) {}

  // In an elastic run, whose ranks come and go:
  /// There is another group of ranks, in place of on_train_begin after the first one. The epoch
  /// under way begins again (on_epoch_begin) at the step where it was.
  virtual void on_reset(Trainer& /*trainer*/) {}
  /// What all ranks remember alike, and another rank's on one that comes or goes back by a step.
  [[nodiscard]] virtual std::string state() const { return ""; }
  virtual void load_state(const std::string& /*state*/) {}
};

struct TrainerOptions {
  std::uint64_t epochs = 1;
  std::size_t batch_per_rank = 32;  ///< with virtual ranks: for each of those
  SamplerOptions sampler{};
  /// With virtual ranks the result does not depend on the number of ranks: samples and validation
  /// are shared out to virtual ranks, buffers of floating point (batch normalisation) become their
  /// averages with every step, and losses and metrics are those of all virtual ranks.
  DistributedOptimizerOptions distributed{};
  /// Ranks may be lost, leave and come while fit() runs, under `kolo run --min-np` (docs/
  /// elastic-runs.md); the result is the same. Needs virtual ranks, and a Trainer that is made
  /// before init(): fit() is an elastic::run. After it, this process is alone: evaluate() goes over
  /// all of its data by itself.
  bool elastic = false;
};

/// Mean over the batch of how well `outputs` answer `targets`.
using BatchMetric =
    std::function<double(const torch::Tensor& outputs, const torch::Tensor& targets)>;
/// Share of the rows whose largest score is at the target.
[[nodiscard]] double accuracy(const torch::Tensor& outputs, const torch::Tensor& targets);
[[nodiscard]] torch::Tensor cross_entropy(const torch::Tensor& outputs,
                                          const torch::Tensor& targets);

/// One rank of the default Context, or alone before init(). Not thread-safe.
class Trainer {
 public:
  using Forward = std::function<torch::Tensor(const torch::Tensor& inputs)>;
  using Loss =
      std::function<torch::Tensor(const torch::Tensor& outputs, const torch::Tensor& targets)>;

  /// `optimizer` must outlive it.
  Trainer(std::shared_ptr<torch::nn::Module> module, Forward forward, Loss loss,
          torch::optim::Optimizer& optimizer, TrainerOptions options = {});
  template <class Contained>
  Trainer(torch::nn::ModuleHolder<Contained> net, Loss loss, torch::optim::Optimizer& optimizer,
          TrainerOptions options = {})
      : Trainer(
            net.ptr(), [net](const torch::Tensor& inputs) mutable { return net->forward(inputs); },
            std::move(loss), optimizer, std::move(options)) {}
  ~Trainer();

  Trainer& metric(std::string name, BatchMetric metric);
  Trainer& add(std::unique_ptr<Callback> callback);
  template <class C, class... Args>
  Trainer& add(Args&&... args) {
    return add(std::make_unique<C>(std::forward<Args>(args)...));
  }

  /// Trains to the last epoch. Returns the metrics of each epoch: loss, the metrics added, and with
  /// `validation` the same as val_loss and so on. Those of training are this rank's own unless a
  /// MetricAverageCallback or virtual ranks are there; those of validation are over all samples and
  /// ranks.
  /// Collective.
  std::vector<Metrics> fit(const Dataset& train, const Dataset* validation = nullptr);

  /// After fit() of an elastic run: this process was asked to go, and others train on.
  [[nodiscard]] bool has_left() const noexcept { return has_left_; }

  /// Loss and metrics on all of `data`, shared out among the ranks. Collective.
  [[nodiscard]] Metrics evaluate(const Dataset& data);

  // --- for callbacks -----------------------------------------------------------------------------

  [[nodiscard]] torch::nn::Module& module() noexcept { return *module_; }
  [[nodiscard]] torch::optim::Optimizer& optimizer() noexcept { return optimizer_; }
  /// Null outside a job.
  [[nodiscard]] DistributedOptimizer* distributed() noexcept { return distributed_.get(); }
  /// Of the run under way.
  [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
  [[nodiscard]] std::uint64_t epochs() const noexcept { return options_.epochs; }
  [[nodiscard]] std::size_t step_of_epoch() const noexcept { return step_of_epoch_; }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
  [[nodiscard]] std::size_t steps_per_epoch() const noexcept { return steps_per_epoch_; }
  [[nodiscard]] int rank() const noexcept { return rank_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  /// What a checkpoint has to hold.
  [[nodiscard]] TrainingState& state() noexcept { return state_; }
  /// The run begins (on_train_begin) with this epoch, after so many steps.
  void begin_at(std::uint64_t epoch, std::uint64_t steps);
  /// No further epoch is begun. Must be called on every rank.
  void stop() noexcept { stopped_ = true; }
  [[nodiscard]] bool stopped() const noexcept { return stopped_; }

 private:
  struct Sums;
  [[nodiscard]] bool has_virtual_ranks() const noexcept {
    return distributed_ != nullptr && distributed_->virtual_rank_count() > 0;
  }
  void begin_fit();
  std::vector<Metrics> fit_elastic(const Dataset& train, const Dataset* validation);
  void join_group();
  void leave_group();
  void prepare(std::size_t samples);
  void make_samplers(std::size_t samples);
  void train_to_end(const Dataset& train, const Dataset* validation);
  /// The end of a step, in an elastic run.
  void commit() const {
    if (commit_) commit_();
  }
  Metrics train_epoch(const Dataset& data);
  double train_step(const Batch& batch, Sums& sums);
  double train_virtual_step(const Dataset& data, Sums& sums);
  void add_share(Sums& sums, const Dataset& data, int rank, int ranks) const;
  void add_batch(Sums& sums, const torch::Tensor& outputs, const Batch& batch, double loss) const;
  template <class F>
  void each_callback(F f) {
    for (auto& callback : callbacks_) f(*callback);
  }

  std::shared_ptr<torch::nn::Module> module_;
  Forward forward_;
  Loss loss_;
  torch::optim::Optimizer& optimizer_;
  TrainerOptions options_;
  std::vector<std::pair<std::string, BatchMetric>> metrics_;
  std::vector<std::unique_ptr<Callback>> callbacks_;
  std::unique_ptr<DistributedOptimizer> distributed_;
  /// One, or one for each virtual rank of this rank.
  std::vector<std::unique_ptr<DistributedSampler>> samplers_;
  torch::Tensor report_;  // with virtual ranks: what one says of its micro-batch
  TrainingState state_;
  int rank_ = 0, ranks_ = 1;
  std::uint64_t epoch_ = 0, steps_ = 0;
  std::size_t step_of_epoch_ = 0, steps_per_epoch_ = 0;
  bool stopped_ = false, has_left_ = false;
  std::unique_ptr<Sums> sums_;  // of the epoch under way
  std::vector<Metrics> history_;
  std::function<void()> commit_;
};

}  // namespace kolo

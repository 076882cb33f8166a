// One training of one network, the same code for one process and for several ranks. An epoch
// gathers samples in blocks (a gather per batch would cost more than a small step), trains batch by
// batch, and sums up losses and metrics, which are averaged over the ranks at the end of the epoch.
// Decisions that all ranks must make alike (the time limit, a request to stop) are agreed upon
// every few steps.
#include "nas/run/training.h"

#include <ATen/CPUGeneratorImpl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/errors.h"
#include "kolo/torch/distributed_optimizer.h"
#include "kolo/torch/rate_scheduler.h"
#include "kolo/torch/sampler.h"
#include "nas/run/flat_parameters.h"
#include "nas/run/process_random.h"
#include "nas/run/sums.h"
#include "train/trainer/patience.h"

namespace kolo::nas {
namespace {

using Clock = std::chrono::steady_clock;
using torch::Tensor;

// Samples that are gathered at once: enough that the gathering does not count, few enough that a
// block of images is small beside the data.
constexpr std::int64_t kBlockSamples = 8192;
constexpr std::int64_t kValidationBatch = 1024;
// Steps after which ranks agree on whether to go on: a meeting at every step would cost as much as
// the step.
constexpr std::int64_t kStepsBetweenAgreements = 16;

Samples gather(const Samples& samples, const Tensor& numbers) {
  Samples gathered;
  for (const Tensor& input : samples.inputs)
    gathered.inputs.push_back(input.index_select(0, numbers));
  for (const Tensor& target : samples.targets)
    gathered.targets.push_back(target.index_select(0, numbers));
  return gathered;
}

void narrow_all(const std::vector<Tensor>& from, std::int64_t first, std::int64_t count,
                std::vector<Tensor>& to) {
  to.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i].narrow(0, first, count);
}

double last_of(const History& history, const std::string& name) {
  const auto found = history.find(name);
  if (found != history.end() && !found->second.empty()) return found->second.back();
  std::string known;
  for (const auto& [each, values] : history) known += (known.empty() ? "" : ", ") + each;
  throw_error(ErrorCode::not_found, "there is no metric '{}' to watch; known: {}", name, known);
}

train::Patience patience_of(const PatienceSettings& settings) {
  return {settings.is_lower_better(), settings.patience, settings.min_delta};
}

class Training {
 public:
  explicit Training(const TrainingTask& task)
      : task_(task),
        settings_(task.settings),
        begun_(Clock::now()),
        scaled_(scaled_rates(settings_, task.ranks.size(), task.scaling)),
        flat_(*task.model),
        sampler_(static_cast<std::size_t>(task.data->train.size()), sampler_options()),
        augment_random_(at::make_generator<at::CPUGeneratorImpl>(
            task.seed + static_cast<std::uint64_t>(task.ranks.rank()))) {
    // For dropout: ranks drop out different numbers. (Threads that train at the same time draw in
    // whatever order they come.)
    static_cast<void>(SeededRandom(task.seed + static_cast<std::uint64_t>(task.ranks.rank())));
    steps_per_epoch_ = kolo::steps_per_epoch(static_cast<std::size_t>(task.data->train.size()),
                                             scaled_.batch_per_rank, task.ranks.size());
    make_optimizer();
    if (settings_.early_stopping) early_ = patience_of(*settings_.early_stopping);
    if (settings_.reduce_on_plateau) plateau_ = patience_of(*settings_.reduce_on_plateau);
  }

  TrainingOutcome run() {
    task_.ranks.broadcast(*task_.model);
    for (std::int64_t epoch = 0; epoch < settings_.num_epochs && !ended_; ++epoch) {
      train_epoch(epoch);
      outcome_.epochs = epoch + 1;
      const bool last = ended_ || epoch + 1 == settings_.num_epochs;
      if (!task_.validate_last_epoch_only || last) validate();
      after_epoch();
    }
    outcome_.end = ended_.value_or(TrainingEnd::epochs);
    outcome_.ranks = task_.ranks.size();
    outcome_.global_batch = scaled_.global_batch;
    outcome_.peak_rate = scaled_.peak_rate;
    // One that was ended by an observer after its epoch has not been judged yet.
    if (task_.validate_last_epoch_only && !outcome_.history.contains("val_loss")) validate();
    outcome_.seconds = std::chrono::duration<double>(Clock::now() - begun_).count();
    return std::move(outcome_);
  }

 private:
  SamplerOptions sampler_options() const {
    SamplerOptions options;
    options.seed = task_.seed;
    options.rank = task_.ranks.rank();
    options.ranks = task_.ranks.size();
    return options;
  }

  void make_optimizer() {
    if (flat_.parameters().empty()) return;  // nothing to learn: an architecture of Identity alone
    optimizer_.emplace(flat_, kOptimizers.at(settings_.optimizer).make,
                       OptimizerSettings{.rate = scaled_.first_rate,
                                         .momentum = settings_.momentum,
                                         .weight_decay = settings_.weight_decay});
    if (task_.ranks.size() > 1) {
      DistributedOptimizerOptions options;
      options.process_set = task_.ranks.process_set();
      distributed_.emplace(*optimizer_, flat_.named(), options);
    }
    rate_.emplace(
        optimizer_->inner(), [this](double epoch) { return scaled_.rate(epoch) * rate_factor_; },
        RateSchedulerOptions{.steps_per_epoch = steps_per_epoch_});
  }

  // --- an epoch ---

  /// The samples of this rank in their order.
  Tensor order_of(std::int64_t epoch) {
    sampler_.set_epoch(static_cast<std::uint64_t>(epoch));
    const auto numbers = sampler_.next(sampler_.local_size());
    static_assert(sizeof(std::size_t) == sizeof(std::int64_t));
    Tensor order = torch::empty({static_cast<std::int64_t>(numbers->size())}, torch::kInt64);
    std::memcpy(order.data_ptr(), numbers->data(), numbers->size() * sizeof(std::size_t));
    return order;
  }

  void train_epoch(std::int64_t epoch) {
    task_.model->train();
    Sums sums(task_.losses.size(), task_.metrics);
    const Tensor order = order_of(epoch);
    const auto batch = static_cast<std::int64_t>(scaled_.batch_per_rank);
    const std::int64_t block = std::max<std::int64_t>(1, kBlockSamples / batch) * batch;
    for (std::int64_t first = 0; first < order.size(0) && !ended_; first += block) {
      const std::int64_t count = std::min(block, order.size(0) - first);
      Samples samples = gather(task_.data->train, order.narrow(0, first, count));
      if (task_.augment) samples = task_.augment(std::move(samples), augment_random_);
      train_block(samples, batch, sums);
      // With several ranks all would have to learn of it: the end of the epoch does that.
      if (task_.ranks.size() == 1 && sums.is_not_a_number()) ended_ = TrainingEnd::not_a_number;
    }
    finish(sums, "");
    if (rate_) outcome_.history["learning_rate"].push_back(rate_->rate());
  }

  void train_block(const Samples& samples, std::int64_t batch, Sums& sums) {
    std::vector<std::vector<Tensor>> kept(task_.losses.size());
    std::vector<std::vector<Tensor>> parts(task_.losses.size());
    std::vector<double> counts;
    std::int64_t done = 0;
    while (done < samples.size() && !ended_) {
      const std::int64_t count = std::min(batch, samples.size() - done);
      narrow_all(samples.inputs, done, count, inputs_);
      narrow_all(samples.targets, done, count, targets_);
      const std::vector<Tensor> outputs = step(parts);
      for (std::size_t i = 0; i < outputs.size(); ++i) kept[i].push_back(outputs[i].detach());
      counts.push_back(static_cast<double>(count));
      done += count;
      check_end();
    }
    const Tensor weights = torch::tensor(counts, torch::kFloat64);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const Tensor losses = torch::stack(parts[i]).to(torch::kFloat64);
      sums.add_losses(i, (losses * weights).sum(), static_cast<double>(done));
      if (!task_.metrics[i].empty())
        sums.add_metrics(i, torch::cat(kept[i]), samples.targets[i].narrow(0, 0, done));
    }
  }

  /// Returns the outputs; adds the losses of each to `parts`.
  std::vector<Tensor> step(std::vector<std::vector<Tensor>>& parts) {
    distributed_ ? distributed_->zero_grad() : flat_.clear_gradients();
    std::vector<Tensor> outputs = task_.model->forward(inputs_);
    Tensor total;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      const auto& loss = task_.losses[i];
      const Tensor part = loss.function(outputs[i], targets_[i]);
      parts[i].push_back(part.detach());
      const Tensor weighed = loss.weight == 1 ? part : part * loss.weight;
      total = total.defined() ? total + weighed : weighed;
    }
    if (!optimizer_) return outputs;
    total.backward();
    rate_->step();
    distributed_ ? distributed_->step() : optimizer_->step();
    return outputs;
  }

  // --- ends ---

  [[nodiscard]] bool time_is_up() const {
    return settings_.time_limit_seconds > 0 &&
           std::chrono::duration<double>(Clock::now() - begun_).count() >=
               settings_.time_limit_seconds;
  }

  /// At the end of a batch.
  void check_end() {
    ++batches_;
    const bool alone = task_.ranks.size() == 1;
    if (!alone && batches_ % kStepsBetweenAgreements != 0) return;
    agree_on_end();
  }

  void agree_on_end() {
    double verdict = 0;
    if (task_.ranks.rank() == 0) {
      if (time_is_up()) verdict = 1;
      if (task_.should_stop && task_.should_stop()) verdict = 2;
    }
    verdict = task_.ranks.first_says(verdict);
    if (verdict == 1) ended_ = TrainingEnd::time_limit;
    if (verdict == 2) ended_ = TrainingEnd::stopped;
  }

  // --- judging ---

  void finish(Sums& sums, const std::string& prefix) {
    sums.add_up(task_.ranks);
    std::vector<double> weights;
    for (const auto& loss : task_.losses) weights.push_back(loss.weight);
    for (const auto& [name, value] : sums.values(weights)) {
      outcome_.history[prefix + name].push_back(value);
      if (!std::isfinite(value)) ended_ = TrainingEnd::not_a_number;
    }
  }

  /// Over all validation samples, each rank a share of them.
  void validate() {
    if (ended_ == TrainingEnd::not_a_number) return;
    const auto begun = Clock::now();
    torch::NoGradGuard no_grad;
    task_.model->eval();
    const Samples& samples = task_.data->validation;
    // With fewer samples than ranks everybody takes all of them: means stay the same.
    const bool share = samples.size() >= task_.ranks.size();
    const std::int64_t ranks = share ? task_.ranks.size() : 1,
                       rank = share ? task_.ranks.rank() : 0;
    const std::int64_t end = samples.size() * (rank + 1) / ranks;
    Sums sums(task_.losses.size(), task_.metrics);
    for (std::int64_t first = samples.size() * rank / ranks; first < end;) {
      const std::int64_t count = std::min(kValidationBatch, end - first);
      narrow_all(samples.inputs, first, count, inputs_);
      narrow_all(samples.targets, first, count, targets_);
      const std::vector<Tensor> outputs = task_.model->forward(inputs_);
      for (std::size_t i = 0; i < outputs.size(); ++i) {
        const Tensor loss = task_.losses[i].function(outputs[i], targets_[i]);
        sums.add_losses(i, loss.to(torch::kFloat64) * static_cast<double>(count),
                        static_cast<double>(count));
        sums.add_metrics(i, outputs[i], targets_[i]);
      }
      first += count;
    }
    finish(sums, "val_");
    outcome_.predict_seconds = std::chrono::duration<double>(Clock::now() - begun).count();
  }

  void after_epoch() {
    if (ended_ == TrainingEnd::not_a_number) return;
    keep_best();
    // On every rank: sessions of several ranks answer all of them together.
    if (task_.after_epoch) task_.after_epoch(outcome_.epochs, outcome_.history);
    if (ended_) return;
    agree_on_end();
    if (!outcome_.history.contains("val_loss")) return;
    // Every rank has the same history, and so comes to the same conclusion.
    if (!ended_ && early_ &&
        early_->is_over(last_of(outcome_.history, settings_.early_stopping->monitor)))
      ended_ = TrainingEnd::early_stopping;
    if (plateau_ &&
        plateau_->is_over(last_of(outcome_.history, settings_.reduce_on_plateau->monitor)))
      rate_factor_ =
          std::max(rate_factor_ * settings_.reduce_on_plateau->factor,
                   settings_.reduce_on_plateau->min_rate / std::max(scaled_.peak_rate, 1e-300));
  }

  void keep_best() {
    const auto found = outcome_.history.find(task_.best_by);
    if (found == outcome_.history.end()) return;
    const double value = found->second.back();
    if (best_ && (task_.best_is_lowest ? value >= *best_ : value <= *best_)) return;
    best_ = value;
    outcome_.best_weights.clear();
    for (const auto& item : flat_.named())
      outcome_.best_weights.emplace_back(item.key(), item.value().detach().clone());
    for (const auto& item : task_.model->named_buffers())
      outcome_.best_weights.emplace_back(item.key(), item.value().detach().clone());
  }

  const TrainingTask& task_;
  const TrainingSettings& settings_;
  Clock::time_point begun_;
  ScaledRates scaled_;
  FlatParameters flat_;
  DistributedSampler sampler_;
  torch::Generator augment_random_;
  std::size_t steps_per_epoch_ = 1;
  std::optional<FlatOptimizer> optimizer_;
  std::optional<DistributedOptimizer> distributed_;
  std::optional<RateScheduler> rate_;
  double rate_factor_ = 1;
  std::optional<train::Patience> early_, plateau_;
  std::optional<double> best_;
  std::vector<Tensor> inputs_, targets_;  // of the step; kept to reuse their memory
  std::int64_t batches_ = 0;
  std::optional<TrainingEnd> ended_;
  TrainingOutcome outcome_;
};

}  // namespace

std::string_view to_string(TrainingEnd end) noexcept {
  switch (end) {
    case TrainingEnd::epochs: return "epochs";
    case TrainingEnd::early_stopping: return "early_stopping";
    case TrainingEnd::time_limit: return "time_limit";
    case TrainingEnd::stopped: return "stopped";
    case TrainingEnd::not_a_number: return "not_a_number";
  }
  return "unknown";
}

TrainingOutcome train(const TrainingTask& task) { return Training(task).run(); }

}  // namespace kolo::nas

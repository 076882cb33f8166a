// fit() is the usual loop with callbacks at its joints: begin and end of training and epoch, before
// and after the step of the optimizer. Metrics are sums over samples divided at the end, so that
// batches of different size weigh by their samples. Validation data is divided among the ranks
// without padding, and its means are weighted by the samples of each rank.
#include "kolo/torch/trainer.h"

#include <algorithm>
#include <numeric>

#include "base/errors.h"
#include "kolo/context.h"
#include "kolo/virtual_ranks.h"
#include "train/trainer/sums.h"

namespace kolo {

double accuracy(const torch::Tensor& outputs, const torch::Tensor& targets) {
  return outputs.argmax(-1).eq(targets).to(torch::kFloat64).mean().item<double>();
}

torch::Tensor cross_entropy(const torch::Tensor& outputs, const torch::Tensor& targets) {
  return torch::nn::functional::cross_entropy(outputs, targets);
}

Trainer::Trainer(std::shared_ptr<torch::nn::Module> module, Forward forward, Loss loss,
                 torch::optim::Optimizer& optimizer, TrainerOptions options)
    : module_(std::move(module)),
      forward_(std::move(forward)),
      loss_(std::move(loss)),
      optimizer_(optimizer),
      options_(std::move(options)) {
  if (options_.batch_per_rank == 0)
    throw_error(ErrorCode::invalid_argument,
                "Trainer: batch_per_rank is 0, but must be at least 1");
  const bool is_virtual = virtual_rank_count(options_.distributed.virtual_ranks) > 0;
  if (options_.elastic) {
    if (!is_virtual)
      throw_error(ErrorCode::invalid_argument,
                  "Trainer: an elastic run needs virtual ranks; give distributed.virtual_ranks or "
                  "kolo run --virtual-ranks");
    if (is_initialized())
      throw_error(ErrorCode::failed_precondition,
                  "Trainer: fit() of an elastic run calls init(); make the Trainer before it");
  } else if (!is_initialized() && is_virtual) {
    throw_error(ErrorCode::failed_precondition, "Trainer: virtual ranks need init() first");
  }
  state_.module = module_.get();
  state_.optimizer = &optimizer_;
  if (is_initialized()) join_group();
}

Trainer::~Trainer() = default;

Trainer& Trainer::metric(std::string name, BatchMetric metric) {
  if (report_.defined())
    throw_error(ErrorCode::failed_precondition,
                "Trainer: with virtual ranks metrics are added before the first fit(), '{}' too",
                name);
  metrics_.emplace_back(std::move(name), std::move(metric));
  return *this;
}

Trainer& Trainer::add(std::unique_ptr<Callback> callback) {
  callbacks_.push_back(std::move(callback));
  return *this;
}

void Trainer::begin_at(std::uint64_t epoch, std::uint64_t steps) {
  epoch_ = epoch;
  steps_ = steps;
  if (distributed_ != nullptr) distributed_->set_steps(steps);
}

void Trainer::make_samplers(std::size_t samples) {
  samplers_.clear();
  SamplerOptions options = options_.sampler;
  if (!has_virtual_ranks()) {
    samplers_.push_back(std::make_unique<DistributedSampler>(samples, options));
  } else {
    options.ranks = distributed_->virtual_rank_count();
    for (const int v : distributed_->virtual_ranks()) {
      options.rank = v;
      samplers_.push_back(std::make_unique<DistributedSampler>(samples, options));
    }
    if (!report_.defined()) {
      report_ = Sums(metrics_.size()).row();
      distributed_->average_with_each_step(module_->buffers());
      distributed_->average_with_each_step({report_});
    }
  }
  state_.sampler = samplers_.front().get();
}

std::vector<Metrics> Trainer::fit(const Dataset& train, const Dataset* validation) {
  if (options_.elastic) return fit_elastic(train, validation);
  begin_fit();
  prepare(train.size());
  each_callback([&](Callback& callback) { callback.on_train_begin(*this); });
  train_to_end(train, validation);
  return history_;
}

void Trainer::begin_fit() {
  begin_at(0, 0);
  step_of_epoch_ = 0;
  stopped_ = false;
  history_.clear();
  sums_ = std::make_unique<Sums>(metrics_.size());
}

void Trainer::prepare(std::size_t samples) {
  make_samplers(samples);
  steps_per_epoch_ =
      kolo::steps_per_epoch(samples, options_.batch_per_rank, samplers_.front()->ranks(),
                            options_.sampler.tail, !options_.sampler.drop_partial_batch);
}

void Trainer::train_to_end(const Dataset& train, const Dataset* validation) {
  while (epoch_ < options_.epochs && !stopped_) {
    for (auto& sampler : samplers_) {
      sampler->set_epoch(epoch_);
      sampler->skip(step_of_epoch_ * options_.batch_per_rank);
    }
    each_callback([&](Callback& callback) { callback.on_epoch_begin(*this); });
    Metrics metrics = train_epoch(train);
    if (validation != nullptr)
      for (const auto& [name, value] : evaluate(*validation)) metrics["val_" + name] = value;
    each_callback([&](Callback& callback) { callback.on_epoch_end(*this, metrics); });
    history_.push_back(std::move(metrics));
    ++epoch_;
    step_of_epoch_ = 0;
    *sums_ = Sums(metrics_.size());
    commit();
  }
  each_callback([&](Callback& callback) { callback.on_train_end(*this); });
}

Metrics Trainer::train_epoch(const Dataset& data) {
  module_->train();
  const auto end_step = [&](double loss) {
    ++step_of_epoch_;
    ++steps_;
    each_callback([&](Callback& callback) { callback.on_step_end(*this, loss); });
    commit();
  };
  if (has_virtual_ranks())
    while (step_of_epoch_ < steps_per_epoch_) end_step(train_virtual_step(data, *sums_));
  else
    while (auto samples = samplers_.front()->next(options_.batch_per_rank))
      end_step(train_step(data.batch(*samples), *sums_));
  return sums_->means(metrics_, "");
}

/// A virtual rank whose samples are used up brings zeros.
double Trainer::train_virtual_step(const Dataset& data, Sums& sums) {
  for (std::size_t i = 0; i < samplers_.size(); ++i) {
    auto micro_batch = distributed_->micro_batch(distributed_->virtual_ranks()[i]);
    Sums mine(metrics_.size());
    if (auto samples = samplers_[i]->next(options_.batch_per_rank)) {
      const Batch batch = data.batch(*samples);
      torch::Tensor outputs = forward_(batch.inputs);
      torch::Tensor loss = loss_(outputs, batch.targets);
      loss.backward();
      add_batch(mine, outputs.detach(), batch, loss.item<double>());
    }
    report_.copy_(mine.row());
  }
  each_callback([&](Callback& callback) { callback.on_step(*this); });
  distributed_->step();
  Sums of_step(metrics_.size());
  of_step.add(report_);
  sums.add(report_);
  return of_step.loss / of_step.samples;
}

double Trainer::train_step(const Batch& batch, Sums& sums) {
  distributed_ != nullptr ? distributed_->zero_grad() : optimizer_.zero_grad();
  torch::Tensor outputs = forward_(batch.inputs);
  torch::Tensor loss = loss_(outputs, batch.targets);
  loss.backward();
  each_callback([&](Callback& callback) { callback.on_step(*this); });
  if (distributed_ != nullptr)
    distributed_->step();
  else
    optimizer_.step();
  const double value = loss.item<double>();
  add_batch(sums, outputs.detach(), batch, value);
  return value;
}

void Trainer::add_batch(Sums& sums, const torch::Tensor& outputs, const Batch& batch,
                        double loss) const {
  const auto count = static_cast<double>(batch.targets.size(0));
  sums.samples += count;
  sums.loss += loss * count;
  for (std::size_t i = 0; i < metrics_.size(); ++i)
    sums.metrics[i] += metrics_[i].second(outputs, batch.targets) * count;
}

Metrics Trainer::evaluate(const Dataset& data) {
  torch::NoGradGuard no_grad;
  const bool was_training = module_->is_training();
  module_->eval();
  Sums sums(metrics_.size());
  if (has_virtual_ranks()) {
    std::vector<torch::Tensor> rows;
    for (const int v : distributed_->virtual_ranks()) {
      Sums mine(metrics_.size());
      add_share(mine, data, v, distributed_->virtual_rank_count());
      rows.push_back(mine.row());
    }
    sums.add(distributed_->sum_over_virtual_ranks(torch::stack(rows)));
  } else {
    add_share(sums, data, rank_, ranks_);
  }
  if (was_training) module_->train();
  Metrics means = sums.means(metrics_, "");
  if (ranks_ > 1 && !has_virtual_ranks()) means = average_metrics(means, sums.samples);
  return means;
}

void Trainer::add_share(Sums& sums, const Dataset& data, int rank, int ranks) const {
  SamplerOptions in_order;
  in_order.shuffle = false;
  in_order.tail = Tail::uneven;
  in_order.rank = rank;
  in_order.ranks = ranks;
  DistributedSampler share(data.size(), in_order);
  while (auto samples = share.next(std::max<std::size_t>(options_.batch_per_rank, 256))) {
    const Batch batch = data.batch(*samples);
    torch::Tensor outputs = forward_(batch.inputs);
    add_batch(sums, outputs, batch, loss_(outputs, batch.targets).item<double>());
  }
}

}  // namespace kolo

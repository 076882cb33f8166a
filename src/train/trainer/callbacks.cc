#include "kolo/torch/callbacks.h"

#include "base/errors.h"
#include "base/frames.h"
#include "base/log.h"
#include "train/trainer/patience.h"

namespace kolo {
namespace {

double monitored(const Metrics& metrics, const std::string& name, const char* who) {
  auto found = metrics.find(name);
  if (found != metrics.end()) return found->second;
  std::string known;
  for (const auto& [each, value] : metrics) known += (known.empty() ? "" : ", ") + each;
  throw_error(ErrorCode::not_found, "{}: there is no metric '{}'; known: {}", who, name, known);
}

}  // namespace

void BroadcastCallback::on_train_begin(Trainer& trainer) {
  if (trainer.ranks() == 1) return;
  broadcast_parameters(trainer.module(), root_);
  broadcast_optimizer_state(trainer.optimizer(), root_);
}

void MetricAverageCallback::on_epoch_end(Trainer& trainer, Metrics& metrics) {
  // With virtual ranks they are averages already, with the same bits everywhere.
  const bool is_average =
      trainer.distributed() != nullptr && trainer.distributed()->virtual_rank_count() > 0;
  if (trainer.ranks() > 1 && !is_average) metrics = average_metrics(metrics);
}

RateCallback::RateCallback(schedule::Rate rate, bool momentum_correction, bool count_from_one)
    : rate_(std::move(rate)),
      momentum_correction_(momentum_correction),
      count_from_one_(count_from_one) {}

void RateCallback::on_train_begin(Trainer& trainer) {
  scheduler_.emplace(trainer.optimizer(), rate_,
                     RateSchedulerOptions{.steps_per_epoch = trainer.steps_per_epoch(),
                                          .momentum_correction = momentum_correction_,
                                          .count_from_one = count_from_one_});
  trainer.state().scheduler = &*scheduler_;
}

void RateCallback::on_reset(Trainer& trainer) {
  if (scheduler_) return;
  const std::string before = std::exchange(loaded_, {});
  RateCallback::on_train_begin(trainer);
  scheduler_->load_state(before);
}

std::string RateCallback::state() const { return scheduler_ ? scheduler_->state() : ""; }

void RateCallback::load_state(const std::string& state) {
  if (scheduler_ && !state.empty())
    scheduler_->load_state(state);
  else
    loaded_ = state;
}

void RateCallback::on_step(Trainer&) { scheduler_->step(); }

void RateCallback::on_epoch_end(Trainer&, Metrics& metrics) {
  metrics["rate"] = scheduler_->rate();
}

CheckpointCallback::CheckpointCallback(Options options) : options_(std::move(options)) {
  if (options_.every_epochs == 0)
    throw_error(ErrorCode::invalid_argument,
                "CheckpointCallback: every_epochs is 0, but must be at least 1");
}

void CheckpointCallback::on_train_begin(Trainer& trainer) {
  checkpoints_.emplace(options_.files);
  if (!options_.resume) return;
  TrainingState state = trainer.state();
  CheckpointParts user;
  state.user = &user;
  if (auto resumed = checkpoints_->resume(state)) {
    const std::uint64_t epoch = std::stoull(user["epoch"]);
    trainer.begin_at(epoch, resumed->step);
    if (trainer.rank() == 0) log::info("resumed after epoch {} ({} steps)", epoch, resumed->step);
  }
}

/// Which rank writes may be another one now.
void CheckpointCallback::on_reset(Trainer&) { checkpoints_.emplace(options_.files); }

void CheckpointCallback::on_epoch_end(Trainer& trainer, Metrics& metrics) {
  const std::uint64_t done = trainer.epoch() + 1;
  if (done % options_.every_epochs != 0 && done != trainer.epochs()) return;
  TrainingState state = trainer.state();
  CheckpointParts user{{"epoch", std::to_string(done)}};
  state.user = &user;
  SaveOptions save;
  if (!options_.monitor.empty())
    save.metric = monitored(metrics, options_.monitor, "CheckpointCallback");
  checkpoints_->save(trainer.steps(), state, save);
}

EarlyStop::EarlyStop(Options options) : options_(std::move(options)) { renew(); }
EarlyStop::~EarlyStop() = default;

void EarlyStop::renew() {
  patience_ = std::make_unique<train::Patience>(options_.lower_is_better, options_.patience,
                                                options_.min_delta);
}

void EarlyStop::on_train_begin(Trainer&) { renew(); }

std::string EarlyStop::state() const {
  ByteWriter writer;
  patience_->save(writer);
  return writer.bytes();
}

void EarlyStop::load_state(const std::string& state) {
  ByteReader reader(state);
  patience_->load(reader);
  reader.finish();
}

void EarlyStop::on_epoch_end(Trainer& trainer, Metrics& metrics) {
  const bool is_over = patience_->is_over(monitored(metrics, options_.monitor, "EarlyStop"));
  torch::Tensor verdict = torch::tensor({is_over ? 1 : 0});
  if (trainer.ranks() > 1) broadcast_(verdict, 0);
  if (verdict.item<int>() != 0) trainer.stop();
}

}  // namespace kolo

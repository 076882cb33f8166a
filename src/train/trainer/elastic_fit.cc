// fit() as an elastic run. What lasts is in the state: the place in the run, what was added up in
// the epoch, the history, and what callbacks have to remember. What belongs to one group of ranks,
// the DistributedOptimizer and the samplers, is made at its beginning and gone at its end.
#include "base/frames.h"
#include "kolo/context.h"
#include "kolo/torch/elastic.h"
#include "train/trainer/sums.h"

namespace kolo {
namespace {

std::string bytes_of(double value) { return {reinterpret_cast<const char*>(&value), sizeof value}; }

double double_of(std::string_view bytes) {
  double value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

std::string bytes_of(const std::vector<Metrics>& history) {
  ByteWriter writer;
  writer.u32(static_cast<std::uint32_t>(history.size()));
  for (const Metrics& metrics : history) {
    writer.u32(static_cast<std::uint32_t>(metrics.size()));
    for (const auto& [name, value] : metrics) writer.string(name).raw(bytes_of(value));
  }
  return writer.bytes();
}

std::vector<Metrics> history_of(const std::string& bytes) {
  ByteReader reader(bytes);
  std::vector<Metrics> history(reader.u32());
  for (Metrics& metrics : history)
    for (std::uint32_t left = reader.u32(); left > 0; --left) {
      const std::string name = reader.string();
      metrics[name] = double_of(reader.raw(sizeof(double)));
    }
  return history;
}

}  // namespace

std::vector<Metrics> Trainer::fit_elastic(const Dataset& train, const Dataset* validation) {
  begin_fit();
  elastic::TorchState state(*module_, optimizer_);
  state.add(epoch_).add(steps_).add(step_of_epoch_).add(stopped_);
  state.add(sums_->samples).add(sums_->loss).add(sums_->metrics);
  state.add([this] { return bytes_of(history_); },
            [this](const std::string& bytes) { history_ = history_of(bytes); });
  for (auto& callback : callbacks_)
    state.add([&callback] { return callback->state(); },
              [&callback](const std::string& text) { callback->load_state(text); });
  // Callbacks come between the optimizer's step and the commit, and may fail there. So may the
  // exchange of parameters by ranks that have updated a part of them each.
  const bool in_place = callbacks_.empty() && !options_.distributed.shard_optimizer_state;
  commit_ = in_place ? [&state] { state.commit_in_place(); }
                     : std::function<void()>([&state] { state.commit(); });

  const auto ending = elastic::run(state, [&](elastic::State&) {
    struct Group {
      Trainer& trainer;
      ~Group() { trainer.leave_group(); }
    } group{*this};
    join_group();
    prepare(train.size());
    const bool begins = state.commits() == 0;
    each_callback([&](Callback& callback) {
      begins ? callback.on_train_begin(*this) : callback.on_reset(*this);
    });
    train_to_end(train, validation);
  });
  commit_ = nullptr;
  has_left_ = ending == elastic::Ending::left;
  return history_;
}

void Trainer::join_group() {
  rank_ = kolo::rank();
  ranks_ = kolo::size();
  distributed_ = std::make_unique<DistributedOptimizer>(optimizer_, module_->named_parameters(),
                                                        options_.distributed);
  distributed_->set_steps(steps_);
  state_.distributed = distributed_.get();
}

/// From then on this process is alone.
void Trainer::leave_group() {
  distributed_.reset();
  state_.distributed = nullptr;
  report_ = torch::Tensor();
  rank_ = 0;
  ranks_ = 1;
}

}  // namespace kolo

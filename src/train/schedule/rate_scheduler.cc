// The rate of each group keeps its ratio to that of the first group. Momentum correction (Goyal et
// al. 2017): the momentum buffer holds steps of the old rate, so for the step in which the rate
// changes momentum is multiplied by new / old.
#include "kolo/torch/rate_scheduler.h"

#include "base/errors.h"
#include "base/json.h"
#include "kolo/torch/lars.h"

namespace kolo {
namespace {

/// Optimizers whose buffer holds steps of past rates. Calls f(get, set) for the options that are of
/// such a kind.
template <class Options, class F>
bool try_momentum(torch::optim::OptimizerOptions& options, F f) {
  auto* known = dynamic_cast<Options*>(&options);
  if (known != nullptr) f(*known);
  return known != nullptr;
}

template <class F>
void with_momentum(torch::optim::OptimizerOptions& options, F f) {
  if (try_momentum<torch::optim::SGDOptions>(options, f)) return;
  if (try_momentum<torch::optim::RMSpropOptions>(options, f)) return;
  try_momentum<LarsOptions>(options, f);
}

double momentum_of(torch::optim::OptimizerOptions& options) {
  double momentum = 0;
  with_momentum(options, [&](auto& known) { momentum = known.momentum(); });
  return momentum;
}

}  // namespace

RateScheduler::RateScheduler(torch::optim::Optimizer& optimizer, schedule::Rate rate,
                             RateSchedulerOptions options)
    : optimizer_(optimizer), schedule_(std::move(rate)), options_(options) {
  if (options_.steps_per_epoch == 0)
    throw_error(ErrorCode::invalid_argument,
                "RateScheduler: steps_per_epoch is 0, but must be at least 1");
  auto& groups = optimizer_.param_groups();
  if (groups.empty())
    throw_error(ErrorCode::invalid_argument, "RateScheduler: the optimizer has no parameters");
  const double first = groups.front().options().get_lr();
  for (auto& group : groups) {
    ratios_.push_back(first == 0 ? 1.0 : group.options().get_lr() / first);
    momentum_.push_back(momentum_of(group.options()));
  }
  rate_ = rate_at(0);
}

double RateScheduler::rate_at(std::uint64_t step) const {
  const auto place = static_cast<double>(step + (options_.count_from_one ? 1 : 0));
  return schedule_(place / static_cast<double>(options_.steps_per_epoch));
}

void RateScheduler::step() {
  const double rate = rate_at(steps_);
  set_rate(rate);
  ++steps_;
}

void RateScheduler::set_rate(double rate) {
  const bool corrects = options_.momentum_correction && rate_ > 0 && steps_ > 0 && rate != rate_;
  auto& groups = optimizer_.param_groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto& options = groups[i].options();
    options.set_lr(rate * ratios_[i]);
    const double momentum = corrects ? momentum_[i] * rate / rate_ : momentum_[i];
    with_momentum(options, [&](auto& known) { known.momentum(momentum); });
  }
  rate_ = rate;
}

std::string RateScheduler::state() const {
  return json_text(
      Json{{"version", 1}, {"steps", steps_}, {"rate", rate_}, {"momentum", momentum_}});
}

void RateScheduler::load_state(const std::string& json) {
  constexpr const char* kWhere = "a rate scheduler's state";
  const Json state = parse_json(json, kWhere);
  if (auto version = json_field<int>(state, "version", kWhere); version != 1)
    throw_error(ErrorCode::unsupported, "{}: version {} is not known", kWhere, version);
  auto momentum = json_field<std::vector<double>>(state, "momentum", kWhere);
  if (momentum.size() != momentum_.size())
    throw_error(ErrorCode::invalid_argument, "{} has {} parameter groups, the optimizer has {}",
                kWhere, momentum.size(), momentum_.size());
  momentum_ = std::move(momentum);
  steps_ = json_field<std::uint64_t>(state, "steps", kWhere);
  rate_ = json_field<double>(state, "rate", kWhere);
}

}  // namespace kolo

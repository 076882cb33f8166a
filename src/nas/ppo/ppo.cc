// An update: look_back() runs the policy and the value network over all episodes of the batch and
// computes advantages (GAE) and returns, which then stay fixed. noptepochs passes follow, each over
// nminibatches parts of the batch: forward, clipped loss, backward, average over the agents, clip,
// one step of Adam. Policy and value network lie in one vector of weights, so that they share the
// average, the clipping and the step.
#include "nas/ppo/ppo.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "kolo/random.h"

namespace kolo::nas {
namespace {

constexpr double kFirstDecay = 0.9, kSecondDecay = 0.999;  // as in the kernel
constexpr std::uint64_t kUpdatesPerCheck = 10;  // of whether all agents have the same weights

NetworkShape shape_for(const PpoOptions& options, const std::vector<std::uint32_t>& choices,
                       bool policy) {
  NetworkShape shape = network_shape(options.network);
  shape.steps = choices.size();
  shape.actions = *std::max_element(choices.begin(), choices.end());
  shape.outputs = policy ? shape.actions : 1;
  return shape;
}

}  // namespace

struct Learner::Batch {
  std::vector<std::vector<std::uint32_t>> actions;  // of each episode
  std::vector<std::vector<double>> advantages, returns, values, log_probabilities;
};

Learner::Learner(const PpoOptions& options, std::vector<std::uint32_t> choices, std::uint64_t seed)
    : options_(options),
      choices_(std::move(choices)),
      policy_(shape_for(options, choices_, true)),
      value_(shape_for(options, choices_, false)),
      weights_(policy_.parameters() + value_.parameters()),
      gradient_(weights_.size()),
      first_moments_(weights_.size()),
      second_moments_(weights_.size()) {
  Random of_policy = Random(seed).stream("ppo policy"), of_value = Random(seed).stream("ppo value");
  // A small last layer: at first every choice is about as likely as the others.
  policy_.initialize(of_policy, 0.01, std::span(weights_).first(policy_.parameters()));
  value_.initialize(of_value, 1.0, std::span(weights_).subspan(policy_.parameters()));
  if (options_.average_gradients)
    options_.average_gradients(weights_, options_.agent == 0 ? 1.0 : 0.0);
}

std::vector<std::uint32_t> Learner::draw(Random& random) const {
  Network<float>::Walk walk(policy_, policy_weights());
  std::vector<std::uint32_t> actions;
  std::vector<double> logs;
  for (const std::uint32_t choices : choices_) {
    log_softmax(walk.next(actions.empty() ? 0 : actions.back()), choices, logs);
    double left = random.uniform();
    std::uint32_t action = 0;
    while (action + 1 < choices && (left -= std::exp(logs[action])) >= 0) ++action;
    actions.push_back(action);
  }
  return actions;
}

/// Forward over all episodes with the policy that drew them.
Learner::Batch Learner::look_back(std::span<const Episode> episodes) {
  const std::size_t count = episodes.size();
  std::vector<std::uint32_t> actions(steps() * count);
  for (std::size_t t = 0; t < steps(); ++t)
    for (std::size_t e = 0; e < count; ++e) actions[t * count + e] = episodes[e].actions[t];
  policy_.forward(policy_weights(), count, actions, policy_record_, logits_);
  value_.forward(value_weights(), count, actions, value_record_, values_);
  Batch batch;
  std::vector<double> logs;
  for (std::size_t e = 0; e < count; ++e) {
    std::vector<double> rewards(steps()), values, log_probabilities, returns;
    rewards.back() = episodes[e].reward;
    for (std::size_t t = 0; t < steps(); ++t) {
      const std::size_t row = t * count + e;
      log_softmax(std::span<const float>(logits_).subspan(row * policy_.output_stride(),
                                                          policy_.output_stride()),
                  choices_[t], logs);
      log_probabilities.push_back(logs[actions[row]]);
      values.push_back(values_[row * value_.output_stride()]);
    }
    std::vector<double> advantages = advantages_of(rewards, values, options_.gamma, options_.lam);
    for (std::size_t t = 0; t < steps(); ++t) returns.push_back(advantages[t] + values[t]);
    batch.actions.push_back(episodes[e].actions);
    batch.advantages.push_back(std::move(advantages));
    batch.returns.push_back(std::move(returns));
    batch.values.push_back(std::move(values));
    batch.log_probabilities.push_back(std::move(log_probabilities));
  }
  return batch;
}

Loss Learner::update(std::span<const Episode> episodes, double rate, Random random) {
  const Batch batch = look_back(episodes);
  std::vector<std::size_t> order(episodes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto parts = static_cast<std::size_t>(options_.nminibatches);
  Loss loss;
  for (std::int64_t epoch = 0; epoch < options_.noptepochs; ++epoch) {
    if (parts > 1) random.shuffle(order);
    for (std::size_t part = 0; part < parts; ++part) {
      const std::size_t begin = part * order.size() / parts;
      const std::size_t end = (part + 1) * order.size() / parts;
      // The first pass over a whole batch begins with what look_back() has computed.
      const bool known = parts == 1 && epoch == 0;
      loss = descend(batch, std::span(order).subspan(begin, end - begin), rate, !known);
    }
  }
  ++updates_;
  if (options_.average_gradients && updates_ % kUpdatesPerCheck == 0) check_agreement();
  return loss;
}

Loss Learner::descend(const Batch& batch, std::span<const std::size_t> chosen, double rate,
                      bool forward) {
  LossInput input;
  for (std::size_t t = 0; t < steps(); ++t)
    for (const std::size_t e : chosen) {
      input.choices.push_back(choices_[t]);
      input.actions.push_back(batch.actions[e][t]);
      input.advantages.push_back(batch.advantages[e][t]);
      input.returns.push_back(batch.returns[e][t]);
      input.old_values.push_back(batch.values[e][t]);
      input.old_log_probabilities.push_back(batch.log_probabilities[e][t]);
    }
  if (forward) {
    policy_.forward(policy_weights(), chosen.size(), input.actions, policy_record_, logits_);
    value_.forward(value_weights(), chosen.size(), input.actions, value_record_, values_);
  }
  const Loss loss = clipped_loss<float>(options_, input, logits_, policy_.output_stride(), values_,
                                        value_.output_stride(), dlogits_, dvalues_);
  policy_.backward(policy_weights(), policy_record_, dlogits_,
                   std::span(gradient_).first(policy_.parameters()));
  value_.backward(value_weights(), value_record_, dvalues_,
                  std::span(gradient_).subspan(policy_.parameters()));
  step(rate, chosen.size());
  return loss;
}

/// Averages over the agents, clips, and makes one step of Adam (Kingma and Ba 2015).
void Learner::step(double rate, std::size_t episodes) {
  if (options_.average_gradients)
    options_.average_gradients(gradient_, static_cast<double>(episodes));
  const double norm =
      std::sqrt(static_cast<double>(kernels<float>().squares(gradient_.size(), gradient_.data())));
  if (!std::isfinite(norm)) return;  // rewards beyond all measure; nothing can be learned from them
  const double scale = norm > options_.max_grad_norm ? options_.max_grad_norm / norm : 1.0;
  ++steps_;
  const auto count = static_cast<double>(steps_);
  const double size = options_.lr * rate * std::sqrt(1 - std::pow(kSecondDecay, count)) /
                      (1 - std::pow(kFirstDecay, count));
  kernels<float>().descend(weights_.size(), static_cast<float>(scale), static_cast<float>(size),
                           gradient_.data(), first_moments_.data(), second_moments_.data(),
                           weights_.data());
}

std::uint64_t Learner::hash() const {
  std::uint64_t hash = 0x9e3779b97f4a7c15 ^ updates_;
  for (const float weight : weights_) {
    hash = (hash ^ std::bit_cast<std::uint32_t>(weight)) * 0xff51afd7ed558ccd;
    hash ^= hash >> 32;
  }
  return hash;
}

/// The hash in pieces that a float holds exactly: who differs from the mean says so to everybody.
void Learner::check_agreement() const {
  std::vector<float> mine;
  for (std::uint64_t rest = hash(), i = 0; i < 8; ++i, rest >>= 8)
    mine.push_back(static_cast<float>(rest & 0xff));
  std::vector<float> mean = mine;
  options_.average_gradients(mean, 1.0);
  std::vector<float> differs{mean == mine ? 0.0F : 1.0F};
  options_.average_gradients(differs, 1.0);
  if (differs[0] > 0)
    throw_error(ErrorCode::internal,
                "ppo: after {} updates the agents have different weights; the averages that they "
                "received differed (agent {})",
                updates_, options_.agent);
}

}  // namespace kolo::nas

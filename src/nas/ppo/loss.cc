// The parts of proximal policy optimisation that know nothing of networks.
#include <algorithm>
#include <cmath>

#include "nas/ppo/ppo.h"

namespace kolo::nas {

std::vector<double> advantages_of(std::span<const double> rewards, std::span<const double> values,
                                  double gamma, double lam) {
  std::vector<double> advantages(rewards.size());
  double later = 0, next_value = 0;
  for (std::size_t t = rewards.size(); t-- > 0;) {
    const double surprise = rewards[t] + gamma * next_value - values[t];
    later = surprise + gamma * lam * later;
    advantages[t] = later;
    next_value = values[t];
  }
  return advantages;
}

template <class T>
void log_softmax(std::span<const T> logits, std::size_t choices, std::vector<double>& logs) {
  logs.assign(logits.begin(), logits.begin() + static_cast<std::ptrdiff_t>(choices));
  const double largest = *std::max_element(logs.begin(), logs.end());
  double sum = 0;
  for (const double logit : logs) sum += std::exp(logit - largest);
  const double log_sum = largest + std::log(sum);
  for (double& logit : logs) logit -= log_sum;
}

namespace {

std::vector<double> normalized(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0, square = 0;
  for (const double value : values) mean += value / count;
  for (const double value : values) square += (value - mean) * (value - mean) / count;
  const double scale = 1 / (std::sqrt(square) + 1e-8);
  std::vector<double> result;
  result.reserve(values.size());
  for (const double value : values) result.push_back((value - mean) * scale);
  return result;
}

}  // namespace

template <class T>
Loss clipped_loss(const PpoOptions& options, const LossInput& input, std::span<const T> logits,
                  std::size_t stride, std::span<const T> values, std::size_t value_stride,
                  std::vector<T>& dlogits, std::vector<T>& dvalues) {
  const std::size_t rows = input.actions.size();
  const double share = 1 / static_cast<double>(rows), clip = options.cliprange;
  const std::vector<double> advantages = normalized(input.advantages);
  dlogits.assign(rows * stride, T(0));
  dvalues.assign(rows * value_stride, T(0));
  Loss loss;
  std::vector<double> logs;
  for (std::size_t row = 0; row < rows; ++row) {
    log_softmax(logits.subspan(row * stride, stride), input.choices[row], logs);
    const double ratio = std::exp(logs[input.actions[row]] - input.old_log_probabilities[row]);
    const double advantage = advantages[row];
    const double plain = -advantage * ratio;
    const double cut = -advantage * std::clamp(ratio, 1 - clip, 1 + clip);
    loss.policy += share * std::max(plain, cut);
    loss.clipped += std::abs(ratio - 1) > clip ? share : 0;
    double entropy = 0;
    for (const double log : logs) entropy -= std::exp(log) * log;
    loss.entropy += share * entropy;
    // Where the cut loss is the larger one it does not depend on the policy any more.
    const double of_log = plain >= cut ? share * plain : 0;
    for (std::size_t k = 0; k < logs.size(); ++k) {
      const double p = std::exp(logs[k]);
      const double hit = k == input.actions[row] ? 1 : 0;
      dlogits[row * stride + k] =
          static_cast<T>(of_log * (hit - p) + options.ent_coef * share * p * (logs[k] + entropy));
    }

    const double value = values[row * value_stride], target = input.returns[row];
    const double old = input.old_values[row];
    const double near = old + std::clamp(value - old, -clip, clip);
    const double plain_square = (value - target) * (value - target);
    const double near_square = (near - target) * (near - target);
    loss.value += 0.5 * share * std::max(plain_square, near_square);
    if (plain_square >= near_square)
      dvalues[row * value_stride] = static_cast<T>(options.vf_coef * share * (value - target));
  }
  return loss;
}

template void log_softmax<float>(std::span<const float>, std::size_t, std::vector<double>&);
template void log_softmax<double>(std::span<const double>, std::size_t, std::vector<double>&);
template Loss clipped_loss<float>(const PpoOptions&, const LossInput&, std::span<const float>,
                                  std::size_t, std::span<const float>, std::size_t,
                                  std::vector<float>&, std::vector<float>&);
template Loss clipped_loss<double>(const PpoOptions&, const LossInput&, std::span<const double>,
                                   std::size_t, std::span<const double>, std::size_t,
                                   std::vector<double>&, std::vector<double>&);

}  // namespace kolo::nas

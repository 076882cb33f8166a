// Proximal policy optimisation (Schulman et al. 2017) with generalised advantage estimation
// (Schulman et al. 2016), a separate value network, and both losses clipped.
//
//   episode     one architecture: an action per step, a reward with the last
//   advantage   how much better an action turned out than the value network had expected
//   ratio       probability of an action now, over that when it was drawn
//
// Cost of an update: noptepochs passes over the batch, each about 24 u² multiplications per step,
// episode and network of u units.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kolo/nas/ppo.h"
#include "nas/ppo/policy.h"

namespace kolo::nas {

/// Advantages of one episode from the value of each step; nothing comes after the last.
std::vector<double> advantages_of(std::span<const double> rewards, std::span<const double> values,
                                  double gamma, double lam);

/// What the loss of a minibatch is made of, a row per (step, episode).
struct LossInput {
  std::vector<std::uint32_t> choices;  // how many actions there are
  std::vector<std::uint32_t> actions;
  std::vector<double> advantages, returns, old_values, old_log_probabilities;
};

struct Loss {
  double policy = 0, value = 0, entropy = 0;
  double clipped = 0;  ///< the share of actions whose ratio was cut
};

/// log of the softmax over the first `choices` of the logits; the others are masked.
template <class T>
void log_softmax(std::span<const T> logits, std::size_t choices, std::vector<double>& logs);

/// policy - ent_coef * entropy + vf_coef * value, and its gradient. `logits` have rows of `stride`,
/// `values` of `value_stride`; the gradients likewise, zero in what is masked or padding.
/// Advantages are normalised here.
template <class T>
Loss clipped_loss(const PpoOptions& options, const LossInput& input, std::span<const T> logits,
                  std::size_t stride, std::span<const T> values, std::size_t value_stride,
                  std::vector<T>& dlogits, std::vector<T>& dvalues);

struct Episode {
  std::vector<std::uint32_t> actions;  // one per step
  double reward = 0;
};

/// The policy, its value function and their optimizer (Adam).
class Learner {
 public:
  /// The first agent's weights become everybody's: collective over the agents.
  Learner(const PpoOptions& options, std::vector<std::uint32_t> choices, std::uint64_t seed);

  [[nodiscard]] std::size_t steps() const { return choices_.size(); }
  [[nodiscard]] std::uint64_t updates() const { return updates_; }

  /// Draws an architecture.
  [[nodiscard]] std::vector<std::uint32_t> draw(Random& random) const;
  /// `rate` multiplies the learning rate. Returns the loss of the last minibatch.
  Loss update(std::span<const Episode> episodes, double rate, Random random);

  [[nodiscard]] std::uint64_t hash() const;
  /// Weights, moments and counts with checksums, and a word of the caller's.
  [[nodiscard]] std::string save(std::uint64_t word) const;
  /// Throws corruption, or failed_precondition when it is of another network. Returns the word.
  std::uint64_t load(const std::string& bytes, const std::string& origin);

 private:
  struct Batch;  // advantages and what the old policy said
  Batch look_back(std::span<const Episode> episodes);
  Loss descend(const Batch& batch, std::span<const std::size_t> chosen, double rate, bool forward);
  void step(double rate, std::size_t episodes);
  void check_agreement() const;

  [[nodiscard]] std::span<const float> policy_weights() const {
    return std::span(weights_).first(policy_.parameters());
  }
  [[nodiscard]] std::span<const float> value_weights() const {
    return std::span(weights_).subspan(policy_.parameters());
  }

  PpoOptions options_;
  std::vector<std::uint32_t> choices_;
  Network<float> policy_, value_;
  std::vector<float> weights_, gradient_, first_moments_, second_moments_;
  std::uint64_t updates_ = 0, steps_ = 0;
  // Kept for their memory.
  Network<float>::Record policy_record_, value_record_;
  std::vector<float> logits_, values_, dlogits_, dvalues_;
};

}  // namespace kolo::nas

// Architecture search by reinforcement learning: proximal policy optimisation, as DeepHyper's
// `ppo`.
//
//   auto sampler = nas::make_ppo_sampler(
//       space, {.directions = {Direction::maximize}, .budget = 300});
//
// An architecture is an episode of one choice per parameter of the space; the reward comes with its
// last step. Batches are synchronous: `episodes` trials are drawn from one policy, and when the
// last of them has ended the policy is updated. Between, ask() answers "not now".
//
// Several agents (one process each) search together: each has trials of its own, and the gradients
// of every minibatch are averaged over all of them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/search/sampler.h"

namespace kolo {
class Communicator;
}

namespace kolo::nas {

/// Replaces `values` by their mean over all agents, each weighted; the same bits everywhere. Every
/// agent calls it equally often with as many values. Throws what the transport throws.
using AverageFunction = std::function<void(std::span<float> values, double weight)>;

struct PpoOptions {
  // Of the same names and defaults as DeepHyper's; SamplerOptions::settings may give them too.
  std::string network = "ppo_lnlstm_128";  ///< or ppo_{lstm,lnlstm}_{32,64,128}
  double cliprange = 0.2;
  double ent_coef = 0.01;
  double gamma = 1.0;
  double lam = 0.95;
  std::int64_t nminibatches = 1;  ///< per pass over a batch; at most `episodes`
  std::int64_t noptepochs = 10;   ///< passes over a batch
  double lr = 3e-4;               ///< falls to zero along the budget, where that is known
  double vf_coef = 0.5;
  double max_grad_norm = 0.5;
  /// Trials in flight from one policy: the agent's workers.
  std::int64_t episodes = 10;
  /// "rank": how many of the agent's results so far are worse, from -1.7 to 1.7 (mean 0, deviation
  /// 1), which is the same for any increasing function of the objective. "raw": the objective.
  std::string reward = "rank";

  /// Which agent this is; only the first one's initial weights count, and each draws its own
  /// architectures (seed + 10000 * agent).
  int agent = 0;
  /// Empty: a lone agent.
  AverageFunction average_gradients;

  /// A file with the state of the policy, written every `checkpoint_every` updates. A sampler that
  /// is made with it and then replays its history (recall, tell) does not repeat the updates that
  /// it holds. A file that is missing, damaged or of another search changes nothing but the time.
  std::string checkpoint;
  std::int64_t checkpoint_every = 10;
};

/// Averages over the ranks of a communicator, which must outlive the function.
AverageFunction average_over(Communicator& communicator);
/// One agent per rank of the default Context, if there is more than one; otherwise as it was.
PpoOptions with_agents_as_ranks(PpoOptions options);

/// The networks that exist.
std::vector<std::string_view> ppo_networks();

/// Settings of `options` (network, cliprange, … episodes, reward) go before `ppo`. Throws
/// unsupported for a space that is not of discrete parameters alone or has conditions or refusals,
/// and for several objectives; invalid_argument; not_found for an unknown network.
std::unique_ptr<search::Sampler> make_ppo_sampler(std::shared_ptr<const search::Space> space,
                                                  search::SamplerOptions options,
                                                  PpoOptions ppo = {});

}  // namespace kolo::nas

// Episodes are numbered in the order of asks; batch b consists of the episodes b·n … (b+1)·n − 1.
// An ask for an episode of batch b is answered only when the b updates before it are made, so which
// policy draws an episode depends on its number alone, and a replay repeats the same updates. The
// random numbers of an episode and of an update come from streams named by their numbers.
//
// A checkpoint only saves time: it has the weights after some updates and a hash of the history
// that led to them. If a replay arrives at the same hash, these updates are skipped; otherwise they
// are made again.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <optional>
#include <unordered_map>

#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "kolo/nas/ppo.h"
#include "kolo/random.h"
#include "nas/ppo/ppo.h"
#include "search/settings.h"

namespace kolo::nas {
namespace {

using search::Parameter;
using search::Point;
using search::Trial;

constexpr std::uint64_t kMostChoices = 10'000;
constexpr std::uint64_t kSeedsApart = 10'000;  // of two agents
constexpr double kWorst = std::numeric_limits<double>::infinity();

PpoOptions read_settings(const search::SamplerOptions& options, PpoOptions ppo) {
  search::SettingsReader settings("ppo", options);
  ppo.network = settings.text("network", ppo.network);
  ppo.cliprange = settings.number("cliprange", ppo.cliprange, 0, 100);
  ppo.ent_coef = settings.number("ent_coef", ppo.ent_coef, 0, 100);
  ppo.gamma = settings.number("gamma", ppo.gamma, 0, 1);
  ppo.lam = settings.number("lam", ppo.lam, 0, 1);
  ppo.lr = settings.number("lr", ppo.lr, 0, 10);
  ppo.vf_coef = settings.number("vf_coef", ppo.vf_coef, 0, 1e6);
  ppo.max_grad_norm = settings.number("max_grad_norm", ppo.max_grad_norm, 1e-12, 1e12);
  ppo.episodes = settings.integer("episodes", ppo.episodes, 1, 1'000'000);
  ppo.nminibatches = settings.integer("nminibatches", ppo.nminibatches, 1, ppo.episodes);
  ppo.noptepochs = settings.integer("noptepochs", ppo.noptepochs, 1, 10'000);
  constexpr const char* kRewards[] = {"rank", "raw"};
  ppo.reward = kRewards[settings.one_of("reward", {"rank", "raw"}, ppo.reward == "raw" ? 1 : 0)];
  settings.done();
  return ppo;
}

search::SamplerOptions for_agent(search::SamplerOptions options, int agent) {
  options.seed += kSeedsApart * static_cast<std::uint64_t>(agent);
  return options;
}

/// Entries of the space as numbers 0 … n - 1 and back.
std::uint32_t action_of(const Parameter& parameter, double entry) {
  const double step = parameter.quantum > 0 ? parameter.quantum : 1;
  return static_cast<std::uint32_t>(
      std::llround(parameter.is_number() ? (entry - parameter.low) / step : entry));
}
double entry_of(const search::Space& space, std::size_t i, std::uint32_t action) {
  const Parameter& parameter = space.parameters()[i];
  const double step = parameter.quantum > 0 ? parameter.quantum : 1;
  return parameter.is_number() ? space.nearest(i, parameter.low + step * action) : action;
}

std::vector<std::uint32_t> choices_of(const search::Space& space, std::size_t objectives) {
  if (objectives != 1)
    throw_error(ErrorCode::unsupported,
                "ppo learns from one objective, not {}; use nsga2 or tpe for several", objectives);
  if (space.size() == 0)
    throw_error(ErrorCode::unsupported,
                "ppo: the space has nothing to choose from; use random instead");
  if (space.has_conditions() || space.has_refusals())
    throw_error(
        ErrorCode::unsupported,
        "ppo does not support conditions and forbidden combinations; use evolution instead");
  std::vector<std::uint32_t> choices;
  for (const Parameter& parameter : space.parameters()) {
    if (!parameter.is_discrete() || parameter.cardinality > kMostChoices)
      throw_error(ErrorCode::unsupported,
                  "ppo chooses among at most {} values for each parameter, but {} is {}; use "
                  "agebo, evolution or forest instead",
                  kMostChoices, parameter.path, parameter.domain);
    choices.push_back(static_cast<std::uint32_t>(parameter.cardinality));
  }
  return choices;
}

class PpoSampler final : public search::Sampler {
 public:
  PpoSampler(std::shared_ptr<const search::Space> space, search::SamplerOptions options,
             PpoOptions ppo)
      : Sampler("ppo", std::move(space), for_agent(options, ppo.agent)),
        ppo_(read_settings(this->options(), std::move(ppo))),
        starting_(starting_points().size()),
        batch_(static_cast<std::size_t>(ppo_.episodes)),
        learner_(ppo_, choices_of(this->space(), objectives()), options.seed) {
    if (!ppo_.checkpoint.empty()) read_checkpoint();
  }

  [[nodiscard]] std::string explain() const override {
    return "ppo: architectures drawn from a policy (" + ppo_.network +
           ") that learns from batches of " + std::to_string(batch_) + " results; " +
           std::to_string(learner_.updates()) + " updates so far";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    if (saved_) {  // a new search where another one was: its own history counts
      saved_.reset();
      catch_up();
    }
    // The number of the next episode says which policy draws it.
    if ((asked() - starting_) / batch_ > batches_) return {};
    Random random = stream(asked());
    const std::vector<std::uint32_t> actions = learner_.draw(random);
    Point point;
    for (std::size_t i = 0; i < actions.size(); ++i)
      point.push_back(entry_of(space(), i, actions[i]));
    return {std::move(point)};
  }

  void on_ask(std::size_t place) override {
    if (asked() - 1 < starting_) return;  // nobody drew it
    episode_of_[place] = episodes_.size();
    episodes_.push_back(place);
    losses_.push_back(kWorst);
    if (episodes_.size() > ended_in_.size() * batch_) ended_in_.push_back(0);
  }

  void on_tell(std::size_t place) override {
    const auto found = episode_of_.find(place);
    if (found == episode_of_.end()) return;
    const Trial& trial = trials()[place];
    if (!trial.values.empty() && trial.violation <= 0) losses_[found->second] = trial.values[0];
    ++ended_in_[found->second / batch_];
    while (batches_ < ended_in_.size() && ended_in_[batches_] == batch_) end_batch();
  }

 private:
  void end_batch();
  void catch_up();
  void update(std::size_t batch);
  [[nodiscard]] std::vector<double> rewards(std::size_t batch) const;
  [[nodiscard]] double rate(std::uint64_t update) const;
  [[nodiscard]] bool any_agent(bool mine) const;
  void read_checkpoint();
  void write_checkpoint() const;

  PpoOptions ppo_;
  std::size_t starting_, batch_;
  Learner learner_;
  std::unordered_map<std::size_t, std::size_t> episode_of_;  // by place in trials()
  std::vector<std::size_t> episodes_;                        // their places
  std::vector<double> losses_;                               // of episodes; failed: infinite
  std::vector<std::size_t> ended_in_;                        // of each batch
  std::size_t batches_ = 0;                                  // that have ended, in order
  std::uint64_t history_ = 0;                                // a hash of these

  struct Saved {
    Learner learner;
    std::uint64_t history;
  };
  std::optional<Saved> saved_;  // whose updates the replay need not repeat
};

void PpoSampler::end_batch() {
  for (std::size_t e = batches_ * batch_; e < (batches_ + 1) * batch_; ++e)
    for (const std::uint64_t word : {search::hash_point(trials()[episodes_[e]].point),
                                     std::bit_cast<std::uint64_t>(losses_[e])}) {
      history_ = (history_ ^ word) * 0xff51afd7ed558ccd;
      history_ ^= history_ >> 32;
    }
  ++batches_;
  if (saved_ && batches_ < saved_->learner.updates()) return;
  if (saved_) {
    if (any_agent(saved_->history != history_))
      log::warning("ppo: {} belongs to another history, so its updates are computed again",
                   ppo_.checkpoint);
    else
      learner_ = std::move(saved_->learner);
    saved_.reset();
  }
  catch_up();
}

void PpoSampler::catch_up() {
  while (learner_.updates() < batches_) update(learner_.updates());
}

void PpoSampler::update(std::size_t batch) {
  const std::vector<double> of_batch = rewards(batch);
  std::vector<Episode> batch_episodes(batch_);
  for (std::size_t k = 0; k < batch_; ++k) {
    const Point& point = trials()[episodes_[batch * batch_ + k]].point;
    for (std::size_t i = 0; i < point.size(); ++i)
      batch_episodes[k].actions.push_back(action_of(space().parameters()[i], point[i]));
    batch_episodes[k].reward = of_batch[k];
  }
  (void)learner_.update(batch_episodes, rate(batch),
                        Random(options().seed).stream("ppo update", batch));
  const auto every = static_cast<std::uint64_t>(std::max<std::int64_t>(1, ppo_.checkpoint_every));
  if (!ppo_.checkpoint.empty() && learner_.updates() == batches_ && learner_.updates() % every == 0)
    write_checkpoint();
}

/// Of the episodes of one batch, from all that had ended with it or before.
std::vector<double> PpoSampler::rewards(std::size_t batch) const {
  const auto known = std::span(losses_).first((batch + 1) * batch_);
  const auto mine = known.last(batch_);
  std::vector<double> rewards;
  if (ppo_.reward == "raw") {
    double worst = -kWorst;
    for (const double loss : known)
      if (loss != kWorst) worst = std::max(worst, loss);
    if (worst == -kWorst) worst = 0;
    for (const double loss : mine) rewards.push_back(-(loss == kWorst ? worst : loss));
    return rewards;
  }
  std::vector<double> sorted(known.begin(), known.end());
  std::sort(sorted.begin(), sorted.end());
  for (const double loss : mine) {
    const auto [low, high] = std::equal_range(sorted.begin(), sorted.end(), loss);
    const auto worse = static_cast<double>(sorted.end() - high);
    const auto equal = static_cast<double>(high - low) - 1;
    const double others = std::max(1.0, static_cast<double>(sorted.size()) - 1);
    rewards.push_back(std::sqrt(3.0) *
                      (sorted.size() == 1 ? 0.0 : 2 * (worse + equal / 2) / others - 1));
  }
  return rewards;
}

double PpoSampler::rate(std::uint64_t update) const {
  if (!options().budget || *options().budget <= starting_) return 1;
  const double planned =
      std::ceil(static_cast<double>(*options().budget - starting_) / static_cast<double>(batch_));
  return std::max(1 - static_cast<double>(update) / planned, 1 / planned);
}

bool PpoSampler::any_agent(bool mine) const {
  if (!ppo_.average_gradients) return mine;
  std::vector<float> share{mine ? 1.0F : 0.0F};
  ppo_.average_gradients(share, 1.0);
  return share[0] > 0;
}

void PpoSampler::read_checkpoint() {
  float updates = 0;
  try {
    Saved saved{learner_, 0};
    saved.history = saved.learner.load(read_file(ppo_.checkpoint), ppo_.checkpoint);
    updates = static_cast<float>(saved.learner.updates());
    saved_ = std::move(saved);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_found)
      log::warning("ppo: {}; the updates are computed again from the history", error.what());
  }
  if (!ppo_.average_gradients) return;
  // All agents leave out the same updates, or none does.
  std::vector<float> mean{updates};
  ppo_.average_gradients(mean, 1.0);
  if (any_agent(mean[0] != updates)) saved_.reset();
}

void PpoSampler::write_checkpoint() const {
  try {
    write_file_atomically(ppo_.checkpoint, learner_.save(history_));
  } catch (const Error& error) {
    log::warning("ppo: cannot save the policy: {}; a restart will take longer", error.what());
  }
}

}  // namespace

std::vector<std::string_view> ppo_networks() { return network_names(); }

std::unique_ptr<search::Sampler> make_ppo_sampler(std::shared_ptr<const search::Space> space,
                                                  search::SamplerOptions options, PpoOptions ppo) {
  return std::make_unique<PpoSampler>(std::move(space), std::move(options), std::move(ppo));
}

}  // namespace kolo::nas

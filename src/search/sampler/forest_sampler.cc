// Balaprakash et al., "DeepHyper: asynchronous hyperparameter search for deep neural networks"
// (2018), with the model of surrogate/forest.h and the search of acquisition/forest_search.h.
//
// The forest is fitted at fixed counts of observations (every one up to a hundred, then each about
// one in a hundred more) from the observations up to that count and a random stream of that count:
// it is a function of the history, and a restarted study fits it but once. A fit looks at a bounded
// number of observations per tree, so that an ask costs about the same at ten thousand trials as at
// a million, and one pool of candidates serves many asks that come between two results: thousands
// of workers are kept busy by one core.
//
// Trees are constant in their leaves: close to an optimum they see no slope. A share of the trials
// therefore goes to the bottom of the basin of the best ones (acquisition/basin.h).
#include "search/sampler/forest_sampler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <tuple>

#include "kolo/random.h"
#include "search/acquisition/basin.h"
#include "search/acquisition/forest_search.h"
#include "search/sampler/observations.h"
#include "search/sampler/prior_turns.h"
#include "search/settings.h"
#include "search/surrogate/output_warp.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr std::size_t kMostPending = 2000;
constexpr std::size_t kFewestCandidates = 12;
constexpr std::size_t kCrowd = 128;  // running trials that are a generation of their own
// How many trials look for the bottom of the basin of the best, and the share of all that are the
// best: among few a quadratic is drawn through what has nothing to do with the optimum.
constexpr double kBasinShare = 0.25, kBasinShareOfCrowd = 0.5;
constexpr std::size_t kEndedPerLeader = 3;

// Where κ ends in each period. By the mean alone the best candidate is the one in the leaves of the
// best trial, and of numbers there is always another hardly different from it: with too small a κ
// most trials are copies. Of discrete parameters there are no such copies, as nothing is tried
// twice.
constexpr double kLeastKappa = 0.5, kLeastKappaOfDiscrete = 0.01;

enum class Failures { ignore, mean, min };

struct ForestSettings {
  ForestOptions forest;
  ExplorationSchedule schedule;
  ForestQuery query;
  std::size_t initial = 10;
  bool filter_duplicated = true;
  Failures failures = Failures::min;

  ForestSettings(const SamplerOptions& options, const Space& space) {
    const std::size_t parameters = space.size();
    SettingsReader reader("forest", options);
    const bool extra = reader.one_of("surrogate_model", {"ET", "RF"}, 0) == 0;
    forest.split = extra ? ForestOptions::Split::random : ForestOptions::Split::best;
    forest.bootstrap = !extra;
    forest.max_features =
        extra ? 1.0 : std::sqrt(1.0 / static_cast<double>(std::max<std::size_t>(parameters, 1)));
    forest.trees = static_cast<int>(reader.integer("n_estimators", 30, 1, 10'000));
    forest.max_samples = reader.number("max_samples", 0.8, 1e-6, 1.0);
    forest.max_features = reader.number("max_features", forest.max_features, 1e-6, 1.0);
    forest.min_samples_split =
        static_cast<int>(reader.integer("min_samples_split", 2, 2, 1'000'000));

    // UCB … with the whole deviation, UCBd … with the deviation between trees alone.
    const std::size_t function =
        reader.one_of("acq_func", {"UCBd", "EId", "PId", "UCB", "EI", "PI"}, 0);
    constexpr Acquisition::Kind kKinds[] = {Acquisition::Kind::ucb, Acquisition::Kind::ei,
                                            Acquisition::Kind::pi};
    query.acquisition.kind = kKinds[function % 3];
    query.epistemic = function < 3;
    const double kappa = reader.number("kappa", 1.96, 0.0, 1e6);
    query.acquisition.xi = reader.number("xi", 0.001, 0.0, 1e6);
    schedule.initial = std::max(kappa, 1e-12);
    constexpr ExplorationSchedule::Kind kSchedules[] = {
        ExplorationSchedule::Kind::periodic_exp_decay, ExplorationSchedule::Kind::bandit,
        ExplorationSchedule::Kind::constant};
    schedule.kind =
        kSchedules[reader.one_of("scheduler", {"periodic-exp-decay", "bandit", "constant"}, 0)];
    const bool all_discrete = std::ranges::all_of(
        space.parameters(), [](const Parameter& parameter) { return parameter.is_discrete(); });
    const double least = all_discrete ? kLeastKappaOfDiscrete : kLeastKappa;
    schedule.final = std::min(reader.number("kappa_final", least, 1e-12, 1e6), schedule.initial);
    schedule.period = static_cast<double>(reader.integer("scheduler_period", 10, 1, 1'000'000));
    constexpr MultiPoint kStrategies[] = {MultiPoint::q_ucb,   MultiPoint::cl_min,
                                          MultiPoint::cl_mean, MultiPoint::cl_max,
                                          MultiPoint::topk,    MultiPoint::boltzmann};
    query.strategy = kStrategies[reader.one_of(
        "multi_point_strategy", {"qUCB", "cl_min", "cl_mean", "cl_max", "topk", "boltzmann"}, 0)];
    query.candidates = static_cast<std::size_t>(reader.integer("n_points", 2000, 10, 10'000'000));

    const auto usual = static_cast<std::int64_t>(std::clamp<std::size_t>(parameters + 1, 5, 10));
    initial = static_cast<std::size_t>(reader.integer("n_initial_points", usual, 1, 1'000'000));
    filter_duplicated = reader.truth("filter_duplicated", true);
    failures =
        static_cast<Failures>(reader.one_of("filter_failures", {"ignore", "mean", "min"}, 2));
    reader.done();
  }
};

/// Enough points for their covariance to have every direction in it.
std::size_t elite_size(std::size_t parameters) { return std::max<std::size_t>(10, 2 * parameters); }

class ForestSampler final : public Sampler {
 public:
  ForestSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("forest", std::move(space), std::move(options)),
        settings_(this->options(), this->space()),
        encoding_(shared_space()),
        moves_(shared_space()),
        observations_(this->space()),
        elite_size_(elite_size(this->space().size())),
        most_leaders_(std::max(elite_size_, Basin::wanted(this->space()))) {}

  [[nodiscard]] std::string explain() const override {
    return "forest: asynchronous model-based search; trees predict the objective, each trial is "
           "the best of a pool by the optimistic prediction, with exploration that decays "
           "periodically";
  }

 protected:
  std::vector<Point> propose(std::size_t count) override;
  void on_ask(std::size_t place) override;
  void on_tell(std::size_t place) override;

 private:
  void fit(std::size_t count);
  void draw_pool();
  void find_basin();
  void new_pool();
  [[nodiscard]] std::size_t candidates() const;
  [[nodiscard]] double kappa_of(std::uint64_t ask) const;
  [[nodiscard]] Point sample_new() const;
  [[nodiscard]] std::vector<Point> elite() const;

  ForestSettings settings_;
  ForestEncoding encoding_;
  Moves moves_;
  Observations observations_;

  // A function of the first fitted_ observations.
  Forest forest_;
  std::size_t fitted_ = 0;
  std::vector<double> weights_;  // of the objectives
  double best_ = 0.0, lie_ = 0.0;

  // The pool of the present asks, a function of the history up to the moment it could be drawn.
  std::optional<ForestSearch> pool_;
  std::optional<Basin> basin_;  // beside it, for one objective
  struct Moment {
    std::size_t trials = 0, running = 0, distinct = 0;
    std::uint64_t asked = 0;
  } moment_;

  /// The best ended trials, of one objective: (violation, value, number of the end).
  std::set<std::tuple<double, double, std::size_t>> leaders_;
  std::size_t elite_size_, most_leaders_;
};

/// The largest count on the schedule that is not above `count`.
std::size_t scheduled(std::size_t count) {
  if (count <= 100) return count;
  std::size_t at = 100;
  for (std::size_t next = at; next <= count; next += std::max<std::size_t>(1, next / 100))
    at = next;
  return at;
}

void ForestSampler::on_ask(std::size_t place) {
  observations_.started(trials()[place]);
  const std::size_t serves = std::clamp<std::size_t>(candidates() / 30, 1, 64);
  if (asked() - moment_.asked == serves) new_pool();
}

void ForestSampler::on_tell(std::size_t place) {
  const Trial& trial = trials()[place];
  if (objectives() == 1 && !trial.values.empty()) {
    // The order of Observations::targets: what violates is behind all else, by how much it does.
    leaders_.emplace(trial.violation, trial.violation > 0.0 ? 0.0 : trial.values[0],
                     observations_.size());
    if (leaders_.size() > most_leaders_) leaders_.erase(std::prev(leaders_.end()));
  }
  observations_.ended(trial, place);
  new_pool();
}

void ForestSampler::new_pool() {
  pool_.reset();
  basin_.reset();
  moment_ = {trials().size(), running_count(), observations_.distinct(), asked()};
}

// Of many that run together, if each were the best of a large pool, all would be about the same,
// where the model's errors make it hopeful. The more run, the fewer candidates each is chosen from,
// until the model but sorts out the worse ones of an evolution strategy's offspring.
std::size_t ForestSampler::candidates() const {
  return std::max(settings_.query.candidates / (1 + moment_.running / 64), kFewestCandidates);
}

double ForestSampler::kappa_of(std::uint64_t ask) const {
  return settings_.schedule.at(ask - std::min<std::uint64_t>(ask, settings_.initial),
                               space().size());
}

// One point at a time, and from a pool that depends on nothing that was asked since it could be
// drawn: how asks are batched changes nothing, nor does a restart between two of a batch.
std::vector<Point> ForestSampler::propose(std::size_t) {
  if (observations_.size() < settings_.initial) return {sample_new()};
  if (is_prior_turn(space(), asked())) return {sample_new()};
  fit(scheduled(observations_.size()));
  if (forest_.empty()) return {sample_new()};  // nothing but failures that are ignored
  if (!pool_) draw_pool();
  while (moment_.trials + pool_->count_started() < trials().size())
    pool_->started(trials()[moment_.trials + pool_->count_started()].point);
  Random random = stream(asked()).stream("pick");
  const double share = moment_.running >= kCrowd ? kBasinShareOfCrowd : kBasinShare;
  if (basin_ && basin_->any() && random.uniform() < share)
    if (Point point = basin_->draw(random); !observations_.seen(point, moment_.distinct))
      return {std::move(point)};
  std::optional<Point> point = pool_->best(kappa_of(asked()), running_count() == 0, random);
  // A small space may have fewer new points than were asked for.
  return {point ? *std::move(point) : sample_new()};
}

void ForestSampler::draw_pool() {
  std::vector<Point> pending;
  for (const std::size_t place : running())
    if (place < moment_.trials) pending.push_back(trials()[place].point);
  if (pending.size() > kMostPending)
    pending.erase(pending.begin(), pending.end() - static_cast<std::ptrdiff_t>(kMostPending));

  ForestQuery query = settings_.query;
  query.candidates = candidates();
  query.crowded = moment_.running >= kCrowd;
  query.lie = lie_;
  query.acquisition.best = best_;
  query.acquisition.kappa = kappa_of(moment_.asked);
  const bool repeats = !settings_.filter_duplicated || observations_.nothing_new(moment_.distinct);
  const auto refused = [&](const Point& point) {
    return !repeats && observations_.seen(point, moment_.distinct);
  };
  forest_.forget();
  pool_.emplace(forest_, encoding_, moves_);
  Random random = stream(moment_.asked);
  pool_->draw(query, elite(), pending, refused, random);
  if (objectives() == 1) find_basin();
}

void ForestSampler::find_basin() {
  std::vector<Point> points;
  std::vector<double> values;
  for (const auto& [violation, value, end] : leaders_) {
    if (violation > 0.0 || kEndedPerLeader * points.size() >= observations_.size()) break;
    points.push_back(trials()[observations_.places()[end]].point);
    values.push_back(value);
  }
  basin_.emplace(moves_, points, values, elite_size_);
}

void ForestSampler::fit(std::size_t count) {
  if (fitted_ == count) return;
  fitted_ = count;
  Random random = Random(options().seed).stream("forest fit", count);
  weights_ = draw_weights(objectives(), random);
  VectorXd targets = observations_.targets(trials(), count, weights_);
  std::vector<Point> points;
  std::vector<double> kept;
  for (std::size_t i = 0; i < count; ++i) {
    const double target = targets[static_cast<Index>(i)];
    if (std::isnan(target) && settings_.failures != Failures::min) continue;
    points.push_back(trials()[observations_.places()[i]].point);
    kept.push_back(target);
  }
  forest_ = Forest();
  if (points.empty()) return;
  VectorXd values =
      warp_outputs(Eigen::Map<VectorXd>(kept.data(), static_cast<Index>(kept.size())));
  if (settings_.failures == Failures::mean)  // the mean of warped values is zero
    for (std::size_t i = 0; i < count; ++i)
      if (std::isnan(targets[static_cast<Index>(i)])) {
        points.push_back(trials()[observations_.places()[i]].point);
        values.conservativeResize(values.size() + 1);
        values[values.size() - 1] = 0.0;
      }
  best_ = values.minCoeff();
  lie_ = settings_.query.strategy == MultiPoint::cl_min   ? best_
         : settings_.query.strategy == MultiPoint::cl_max ? values.maxCoeff()
                                                          : values.mean();
  forest_.fit(encoding_.rows(points), values, encoding_.choices(), settings_.forest, random);
}

std::vector<Point> ForestSampler::elite() const {
  std::vector<Point> points;
  auto add = [&](std::size_t end) {
    points.push_back(trials()[observations_.places()[end]].point);
  };
  if (objectives() == 1) {
    for (const auto& [violation, value, end] : leaders_) {
      if (points.size() == elite_size_) break;
      add(end);
    }
    return points;
  }
  const VectorXd targets = observations_.targets(trials(), observations_.size(), weights_);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < observations_.size(); ++i)
    if (!std::isnan(targets[static_cast<Index>(i)])) order.push_back(i);
  const auto good = static_cast<std::ptrdiff_t>(std::min(elite_size_, order.size()));
  std::partial_sort(order.begin(), order.begin() + good, order.end(),
                    [&](std::size_t a, std::size_t b) {
                      return std::pair(targets[static_cast<Index>(a)], a) <
                             std::pair(targets[static_cast<Index>(b)], b);
                    });
  std::for_each(order.begin(), order.begin() + good, add);
  return points;
}

Point ForestSampler::sample_new() const {
  constexpr int kTries = 100;
  const bool repeats = !settings_.filter_duplicated || observations_.nothing_new();
  Random random = stream(asked());
  Point point = space().sample(random);
  for (int attempt = 0; attempt < kTries && !repeats && observations_.seen(point); ++attempt)
    point = space().sample(random);
  return point;
}

}  // namespace

std::unique_ptr<Sampler> make_forest_sampler(std::shared_ptr<const Space> space,
                                             SamplerOptions options) {
  return std::make_unique<ForestSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search

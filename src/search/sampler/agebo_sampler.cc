// The space is divided in two: `part_` is the subspace of the hyperparameters, searched by a forest
// sampler of its own, and the rest is evolved. Each ask first asks the forest and then gives these
// hyperparameters to a child of the population, or to a random architecture while the population is
// being filled.
#include "search/sampler/agebo_sampler.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/errors.h"
#include "kolo/random.h"
#include "search/sampler/aging_population.h"
#include "search/sampler/forest_sampler.h"
#include "search/sampler/subspace.h"
#include "search/sampler/variation.h"
#include "search/sampler/wrapper.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

// A loss beyond this tells the optimiser no more than this does.
constexpr double kLargestLoss = 1e3;

bool is_below(const std::string& path, const std::string& root) {
  return path == root || (path.size() > root.size() && path.starts_with(root) &&
                          (root.empty() || path[root.size()] == '/'));
}

/// The parameters of the optimiser: not below any of the paths, and always active. What has a
/// condition goes with the architecture.
std::vector<std::size_t> hyperparameters(const Space& space,
                                         const std::vector<std::string>& evolved) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const std::string& path = space.parameters()[i].path;
    const bool evolves =
        space.is_conditional(i) || std::any_of(evolved.begin(), evolved.end(),
                                               [&](const auto& r) { return is_below(path, r); });
    if (!evolves) places.push_back(i);
  }
  return places;
}

struct AgeboSettings {
  AgeboSettings(const Space& space, const SamplerOptions& options)
      : reader("agebo", options), population(reader, options) {
    const Value usual("arch_seq");
    const Value* given = reader.raw("evolve");
    const Value& evolve = given == nullptr ? usual : *given;
    std::vector<std::string> evolved;
    if (evolve.is_list())
      for (const Value& path : evolve.as_list()) evolved.push_back(path.as_string());
    else
      evolved.push_back(evolve.as_string());
    optimized = hyperparameters(space, evolved);

    optimizer.directions.assign(options.directions.size(), Direction::minimize);
    optimizer.seed = options.seed;
    optimizer.budget = options.budget;
    optimizer.settings = {
        {"surrogate_model", "RF"},
        {"scheduler", "constant"},
        {"filter_duplicated", false},  // good hyperparameters are good for many architectures
        {"kappa", reader.number("kappa", 0.001, 0.0, 1e6)},
        {"xi", reader.number("xi", 1e-6, 0.0, 1e6)},
        {"acq_func", reader.text("acq_func", "UCB")},
        {"n_initial_points", reader.integer("n_initial_points", 10, 1, 1'000'000)}};
    reader.done();
  }

  SettingsReader reader;
  AgingPopulation population;
  std::vector<std::size_t> optimized;  // places of parameters
  SamplerOptions optimizer;
};

class AgeboSampler final : public Sampler {
 public:
  AgeboSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : AgeboSampler(std::move(space), std::move(options), {}) {}

  [[nodiscard]] std::string explain() const override {
    if (!optimizer_) return "agebo: there are no hyperparameters, and so it is plain evolution";
    const std::string forest =
        "a forest proposes " + std::to_string(part_->chosen().size()) + " hyperparameters";
    if (part_->chosen().size() == space().size())
      return "agebo: no parameter is to be evolved (setting `evolve`): " + forest +
             ", and that is all";
    return "agebo: aging evolution of " + std::to_string(space().size() - part_->chosen().size()) +
           " parameters, children of the best of " + std::to_string(population_.sample()) +
           " out of the last " + std::to_string(population_.size()) + " trials; " + forest;
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    Point part;
    if (optimizer_) {
      auto asked_for = optimizer_->ask(asked());
      KOLO_CHECK(asked_for.has_value());
      part = *std::move(asked_for);
    }
    return {with_architecture(part, random)};
  }

  void on_ask(std::size_t place) override {
    population_.started(trials()[place]);
    if (!optimizer_) return;
    const std::uint64_t number = asked() - 1;
    numbers_[place] = number;
    optimizer_->begin(number, part_->part_of(trials()[place].point));
  }

  void on_tell(std::size_t place) override {
    const Trial& trial = trials()[place];
    if (optimizer_) {
      const Outcome outcome = clipped(trial);
      const Point part = part_->part_of(trial.point);
      if (trial.id)
        optimizer_->sampler().tell(TrialId{numbers_.at(place)}, outcome);
      else if (part_->space()->allows(part))
        optimizer_->sampler().add(part, outcome);
    }
    population_.ended(trial, place);
  }

 private:
  AgeboSampler(std::shared_ptr<const Space> space, SamplerOptions options,
               std::optional<AgeboSettings> settings)
      : Sampler("agebo", std::move(space), std::move(options)),
        population_(settings.emplace(this->space(), this->options()).population) {
    // With nothing to choose, a forest is as good as any.
    if (settings->optimized.empty() && this->space().size() > 0) return;
    part_.emplace(shared_space(), settings->optimized);
    optimizer_.emplace(make_forest_sampler(part_->space(), settings->optimizer));
  }

  Point with_architecture(const Point& part, Random& random) const;

  [[nodiscard]] Outcome clipped(const Trial& trial) const {
    Outcome outcome{trial.state, trial.values, {}};
    if (population_.is_full())
      for (double& value : outcome.values) value = std::min(value, kLargestLoss);
    if (trial.violation > 0) outcome.constraints.push_back(trial.violation);
    return outcome;
  }

  AgingPopulation population_;
  std::optional<Subspace> part_;  // none: everything is evolved
  std::optional<Follower> optimizer_;
  std::unordered_map<std::size_t, std::uint64_t> numbers_;  // of places
};

/// A child or, at first, a random architecture, with these hyperparameters.
Point AgeboSampler::with_architecture(const Point& part, Random& random) const {
  Point point;
  std::optional<Point> repeated;
  for (int attempt = 0; attempt < AgingPopulation::kTries; ++attempt) {
    if (population_.is_full()) {
      point = trials()[population_.parent(trials(), random)].point;
      if (!part_) {
        point = mutate_one(space(), point, random);
      } else {
        change_one(space(), point, part_->chosen(), random);
      }
    } else {
      point = space().sample(random);
    }
    if (part_ && !part_->settle(part, point, random)) continue;
    if (!population_.refuses(point)) return point;
    if (!repeated) repeated = point;
  }
  if (repeated) return *std::move(repeated);
  // The hyperparameters do not go with any of these; with some architecture they do.
  auto other = part_ ? part_->complete(part) : std::nullopt;
  return other ? *std::move(other) : point;
}

}  // namespace

std::unique_ptr<Sampler> make_agebo_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options) {
  return std::make_unique<AgeboSampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search

// Both samplers draw at random until their population is full. In evolution a child that was tried
// before is drawn again a limited number of times, after which it is accepted: in a small space
// there may be nothing new.
#include "search/sampler/evolution_samplers.h"

#include <algorithm>

#include "kolo/random.h"
#include "search/sampler/aging_population.h"
#include "search/sampler/trial_ranking.h"
#include "search/sampler/variation.h"
#include "search/settings.h"

namespace kolo::search {
namespace {

class EvolutionSampler final : public Sampler {
 public:
  EvolutionSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("evolution", std::move(space), std::move(options)), population_(read_settings()) {}

  [[nodiscard]] std::string explain() const override {
    return "evolution: children of the best of " + std::to_string(population_.sample()) +
           " out of the last " + std::to_string(population_.size()) + " trials";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    Point point;
    for (int attempt = 0; attempt < AgingPopulation::kTries; ++attempt) {
      point =
          population_.is_full()
              ? mutate_one(space(), trials()[population_.parent(trials(), random)].point, random)
              : space().sample(random);
      if (!population_.refuses(point)) break;
    }
    return {std::move(point)};
  }

  void on_ask(std::size_t place) override { population_.started(trials()[place]); }
  void on_tell(std::size_t place) override { population_.ended(trials()[place], place); }

 private:
  AgingPopulation read_settings() {
    SettingsReader settings("evolution", options());
    AgingPopulation population(settings, options());
    settings.done();
    return population;
  }

  AgingPopulation population_;
};

class Nsga2Sampler final : public Sampler {
 public:
  Nsga2Sampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("nsga2", std::move(space), std::move(options)),
        encoder_(shared_space()),
        ranking_(objectives()) {
    SettingsReader settings("nsga2", this->options());
    population_ = static_cast<std::size_t>(
        settings.integer("population", default_population(this->options(), 50), 2, 1'000'000));
    settings.done();
  }

  [[nodiscard]] std::string explain() const override {
    return "nsga2: children of the best " + std::to_string(population_) +
           " trials, by dominance and crowding";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    if (ranking_.size() < population_) return {space().sample(random)};
    const auto parents = ranking_.best(trials(), population_);
    // They are in order: the smaller of two indices wins its tournament.
    const auto tournament = [&]() -> const Point& {
      return trials()[parents[std::min(random.below(parents.size()), random.below(parents.size()))]]
          .point;
    };
    const Point& mother = tournament();
    const Point& father = tournament();
    return {cross_and_mutate(encoder_, mother, father, random)};
  }

  void on_tell(std::size_t place) override { ranking_.add(trials(), place); }

 private:
  Encoder encoder_;
  TrialRanking ranking_;
  std::size_t population_ = 50;
};

}  // namespace

std::unique_ptr<Sampler> make_evolution_sampler(std::shared_ptr<const Space> space,
                                                SamplerOptions options) {
  return std::make_unique<EvolutionSampler>(std::move(space), std::move(options));
}

std::unique_ptr<Sampler> make_nsga2_sampler(std::shared_ptr<const Space> space,
                                            SamplerOptions options) {
  return std::make_unique<Nsga2Sampler>(std::move(space), std::move(options));
}

}  // namespace kolo::search

#include "search/sampler/evolution_samplers.h"

#include <algorithm>

#include "base/random.h"
#include "search/sampler/settings.h"
#include "search/sampler/trial_ranking.h"
#include "search/sampler/variation.h"

namespace kolo::search {
namespace {

// A tenth of the trials planned, within reason; `otherwise` when nobody said how many.
std::int64_t default_population(const SamplerOptions& options, std::int64_t otherwise) {
  if (!options.budget) return otherwise;
  return std::clamp(
      static_cast<std::int64_t>(std::min<std::uint64_t>(*options.budget, 1'000'000)) / 10,
      std::int64_t{10}, otherwise);
}

class EvolutionSampler final : public Sampler {
 public:
  EvolutionSampler(std::shared_ptr<const Space> space, SamplerOptions options)
      : Sampler("evolution", std::move(space), std::move(options)) {
    SettingsReader settings("evolution", this->options());
    population_ = static_cast<std::size_t>(
        settings.integer("population", default_population(this->options(), 100), 1, 1'000'000));
    const auto sample = static_cast<std::int64_t>(std::min<std::size_t>(10, population_));
    sample_ = static_cast<std::size_t>(settings.integer("sample", sample, 1, 1'000'000));
    sample_ = std::min(sample_, population_);
    settings.done();
  }

  [[nodiscard]] std::string explain() const override {
    return "evolution: children of the best of " + std::to_string(sample_) + " out of the last " +
           std::to_string(population_) + " trials";
  }

 protected:
  std::vector<Point> propose(std::size_t) override {
    Random random = stream(asked());
    if (ended_.size() < population_) return {space().sample(random)};
    // Members without replacement: Floyd's method would do, but samples are small.
    std::vector<std::size_t> drawn;
    while (drawn.size() < sample_) {
      const std::size_t member = ended_[ended_.size() - 1 - random.below(population_)];
      if (std::find(drawn.begin(), drawn.end(), member) == drawn.end()) drawn.push_back(member);
    }
    const std::size_t parent = *std::min_element(
        drawn.begin(), drawn.end(),
        [&](std::size_t a, std::size_t b) { return is_better(trials()[a], trials()[b]); });
    return {mutate_one(space(), trials()[parent].point, random)};
  }

  void on_tell(std::size_t place) override { ended_.push_back(place); }

 private:
  std::size_t population_ = 100, sample_ = 10;
  std::vector<std::size_t> ended_;  // in the order of their ends
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

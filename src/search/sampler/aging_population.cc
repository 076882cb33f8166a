#include "search/sampler/aging_population.h"

#include <algorithm>

#include "kolo/random.h"
#include "search/sampler/trial_ranking.h"

namespace kolo::search {

std::int64_t default_population(const SamplerOptions& options, std::int64_t otherwise) {
  if (!options.budget) return otherwise;
  return std::clamp(
      static_cast<std::int64_t>(std::min<std::uint64_t>(*options.budget, 1'000'000)) / 10,
      std::int64_t{10}, otherwise);
}

AgingPopulation::AgingPopulation(SettingsReader& settings, const SamplerOptions& options) {
  size_ = static_cast<std::size_t>(
      settings.integer("population", default_population(options, 100), 1, 1'000'000));
  // A short search cannot wait for the better ones to spread: its samples are larger.
  const auto large = std::max<std::size_t>(10, 20 - std::min<std::size_t>(size_ / 10, 10));
  const auto usual = static_cast<std::int64_t>(std::min(large, size_));
  sample_ = static_cast<std::size_t>(settings.integer("sample", usual, 1, 1'000'000));
  sample_ = std::min(sample_, size_);
  filter_duplicated_ = settings.truth("filter_duplicated", true);
}

void AgingPopulation::ended(const Trial& trial, std::size_t place) {
  if (!trial.id) started(trial);  // a result from elsewhere
  ended_.push_back(place);
}

std::size_t AgingPopulation::parent(std::span<const Trial> trials, Random& random) const {
  // Members without replacement: Floyd's method would do, but samples are small.
  std::vector<std::size_t> drawn;
  drawn.reserve(sample_);
  while (drawn.size() < sample_) {
    const std::size_t member = ended_[ended_.size() - 1 - random.below(size_)];
    if (std::find(drawn.begin(), drawn.end(), member) == drawn.end()) drawn.push_back(member);
  }
  return *std::min_element(drawn.begin(), drawn.end(), [&](std::size_t a, std::size_t b) {
    return is_better(trials[a], trials[b]);
  });
}

}  // namespace kolo::search

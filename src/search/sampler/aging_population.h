// The population of aging evolution (Real et al., "Regularized evolution for image classifier
// architecture search", 2019): the last trials that ended, however good they are. A parent is the
// best of a random sample of them.
//
// Cost: O(sample) per parent; O(1) per trial.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_set>
#include <vector>

#include "kolo/search/sampler.h"
#include "search/settings.h"

namespace kolo {
class Random;
}

namespace kolo::search {

class AgingPopulation {
 public:
  /// Reads `population`, `sample` and `filter_duplicated`.
  AgingPopulation(SettingsReader& settings, const SamplerOptions& options);

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::size_t sample() const noexcept { return sample_; }

  /// From on_ask and on_tell.
  void started(const Trial& trial) { tried_.insert(hash_point(trial.point)); }
  void ended(const Trial& trial, std::size_t place);

  [[nodiscard]] bool is_full() const noexcept { return ended_.size() >= size_; }
  /// The place of a parent in `trials`; the population must be full.
  [[nodiscard]] std::size_t parent(std::span<const Trial> trials, Random& random) const;
  /// Whether the point was tried before, and that matters.
  [[nodiscard]] bool refuses(const Point& point) const {
    return filter_duplicated_ && tried_.contains(hash_point(point));
  }

  /// How often a child is drawn before one that was tried already is taken after all.
  static constexpr int kTries = 100;

 private:
  std::size_t size_ = 100, sample_ = 10;
  bool filter_duplicated_ = true;
  std::vector<std::size_t> ended_;  // in the order of their ends
  std::unordered_set<std::uint64_t> tried_;
};

/// A tenth of the trials planned, within reason; `otherwise` when nobody said how many.
std::int64_t default_population(const SamplerOptions& options, std::int64_t otherwise);

}  // namespace kolo::search

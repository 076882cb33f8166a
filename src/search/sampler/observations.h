// The data of a model-based sampler: the trials that ended, in that order, with one number each to
// be minimised; and the points that were already tried.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "kolo/random.h"
#include "kolo/search/sampler.h"

namespace kolo::search {

class Observations {
 public:
  explicit Observations(const Space& space) : cardinality_(space.cardinality()) {}

  /// From on_ask.
  void started(const Trial& trial) { seen_.try_emplace(hash_point(trial.point), seen_.size()); }
  /// From on_tell.
  void ended(const Trial& trial, std::size_t place);

  [[nodiscard]] std::size_t size() const { return places_.size(); }
  /// Of ended trials in Sampler::trials(), in the order of their ends.
  [[nodiscard]] std::span<const std::size_t> places() const { return places_; }

  [[nodiscard]] bool seen(const Point& point) const { return seen_.contains(hash_point(point)); }
  /// Whether a finite space has no point left that was not tried.
  [[nodiscard]] bool nothing_new() const { return nothing_new(seen_.size()); }

  /// How many different points were seen, and the same questions as of when they were `distinct`.
  [[nodiscard]] std::size_t distinct() const { return seen_.size(); }
  [[nodiscard]] bool seen(const Point& point, std::size_t distinct) const {
    const auto found = seen_.find(hash_point(point));
    return found != seen_.end() && found->second < distinct;
  }
  [[nodiscard]] bool nothing_new(std::size_t distinct) const {
    return cardinality_ && distinct >= *cardinality_;
  }

  /// One number for each of the first `count` ends; not-a-number marks a failed trial.
  /// Points that violate constraints are worse than all that do not, the more the worse. Several
  /// objectives become one by the augmented Chebyshev norm with these weights (Knowles, "ParEGO",
  /// 2006), each scaled by its range among the trials.
  [[nodiscard]] Eigen::VectorXd targets(std::span<const Trial> trials, std::size_t count,
                                        std::span<const double> weights) const;

 private:
  std::vector<std::size_t> places_;
  std::unordered_map<std::uint64_t, std::size_t> seen_;  // and which in order of appearance
  std::optional<std::uint64_t> cardinality_;
};

/// Weights of several objectives, evenly distributed over those that sum to 1.
std::vector<double> draw_weights(std::size_t objectives, Random& random);
/// All the same.
std::vector<double> even_weights(std::size_t objectives);

}  // namespace kolo::search

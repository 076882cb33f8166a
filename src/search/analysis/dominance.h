// Who is better with several objectives, all minimised.
//
// Vocabulary: a *dominates* b when it is nowhere worse and somewhere better. The first *front* is
// made of the vectors that nobody dominates, front k + 1 of those that only members of the fronts
// up to k dominate. *Crowding* (Deb et al., "A fast and elitist multiobjective genetic algorithm:
// NSGA-II", 2002) prefers, inside a front, vectors far from their neighbours.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace kolo::search {

using Objectives = std::vector<double>;

/// Whether `a` is at least as good in every objective and better in one.
[[nodiscard]] inline bool dominates(std::span<const double> a, std::span<const double> b) {
  bool better = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

/// Fronts that grow as vectors arrive. Inserting compares with O(log fronts) fronts and then with
/// the members that have to step back: O(n) comparisons in the worst case, few in the usual one.
class Fronts {
 public:
  /// Returns the front (0 is best) that `values`, free of NaN, belongs to now.
  std::size_t insert(std::span<const double> values);

  /// The front it would have.
  [[nodiscard]] std::size_t front_of(std::span<const double> values) const noexcept;

  /// How many vectors are in fronts before `front`.
  [[nodiscard]] std::size_t count_before(std::size_t front) const noexcept;

  /// The q-quantile of the fronts' numbers over all vectors, interpolated linearly. Not when empty.
  [[nodiscard]] double quantile(double q) const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const std::vector<std::vector<Objectives>>& fronts() const noexcept {
    return fronts_;
  }

 private:
  std::vector<std::vector<Objectives>> fronts_;
  std::size_t size_ = 0;
};

/// The front of each vector; vectors with a NaN come after all others.
[[nodiscard]] std::vector<std::size_t> front_numbers(std::span<const Objectives> vectors);

/// Indices from best to worst: by value with one objective, by front and then crowding with
/// several; NaN last, ties in the given order.
[[nodiscard]] std::vector<std::size_t> best_first(std::span<const Objectives> vectors);

}  // namespace kolo::search

// Which trials are the best so far, kept up to date as results come.
//
// Order, best first: complete and feasible ones by value; pruned ones by how far they came, then
// by value; infeasible ones by how much they violate; failed ones. Ties: the earlier one first.
// With several objectives, "by value" means by how many complete trials dominate it, and among
// those that nothing dominates, the less crowded one first.
// Cost: O(log n) per result with one objective, O(n) with several.
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "kolo/search/trial.h"

namespace kolo::search {

class TrialRanking {
 public:
  explicit TrialRanking(std::size_t objectives) : objectives_(objectives) {}

  /// A trial that has ended. `trials` must be the same history in every call.
  void add(std::span<const Trial> trials, std::size_t place);

  [[nodiscard]] std::size_t size() const noexcept { return count_; }

  /// The `count` best, best first.
  [[nodiscard]] std::vector<std::size_t> best(std::span<const Trial> trials,
                                              std::size_t count) const;

 private:
  struct Key {
    int tier;
    double first, second;
    std::size_t place;
    bool operator<(const Key& other) const {
      return std::tie(tier, first, second, place) <
             std::tie(other.tier, other.first, other.second, other.place);
    }
  };

  friend bool is_better(const Trial& left, const Trial& right);
  static Key key_of(const Trial& trial, std::size_t place);
  [[nodiscard]] std::vector<Key> keys_of_several(std::span<const Trial> trials) const;

  std::size_t objectives_;
  std::size_t count_ = 0;
  std::set<Key> order_;                    // one objective
  std::vector<std::size_t> ended_;         // several
  std::vector<std::uint32_t> dominators_;  // of each in ended_
};

/// Whether one trial that has ended ranks before another one. With several objectives: dominates
/// it.
[[nodiscard]] bool is_better(const Trial& left, const Trial& right);

/// How far the neighbours of each point are, summed over the objectives and scaled by their ranges;
/// infinite at the ends (Deb et al. 2002).
[[nodiscard]] std::vector<double> crowding_distances(std::span<const std::vector<double>> values);

}  // namespace kolo::search

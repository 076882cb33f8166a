// The results of the trials that reached one rung, and the rank of a new one among them.
//
// With one objective a result is judged by its value; with several by the front it is in (see
// analysis/dominance.h), so that both are numbers of which the smaller is better. NaN is never
// recorded and is worse than anything.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>

#include "search/analysis/dominance.h"
#include "search/scheduler/ordered_values.h"

namespace kolo::search {

class Ranking {
 public:
  [[nodiscard]] std::size_t size() const noexcept { return values_.size() + fronts_.size(); }

  /// NaN scores are left out.
  void record(std::span<const double> scores) {
    if (is_broken(scores)) return;
    if (scores.size() == 1)
      values_.insert(scores[0]);
    else
      fronts_.insert(scores);
  }

  /// What `scores` is judged by: its value, or the front it is in or would be in. NaN if broken.
  [[nodiscard]] double grade(std::span<const double> scores) const {
    if (is_broken(scores)) return std::nan("");
    return scores.size() == 1 ? scores[0] : static_cast<double>(fronts_.front_of(scores));
  }

  /// How many recorded ones are strictly better than this grade.
  [[nodiscard]] std::size_t ahead(double grade) const noexcept {
    if (std::isnan(grade)) return size();
    if (fronts_.size() > 0) return fronts_.count_before(static_cast<std::size_t>(grade));
    return values_.count_below(grade);
  }

  /// The q-quantile of the recorded grades; none when nothing is recorded.
  [[nodiscard]] std::optional<double> quantile(double q) const noexcept {
    if (size() == 0) return std::nullopt;
    return fronts_.size() > 0 ? fronts_.quantile(q) : values_.quantile(q);
  }

  /// The grade of the one with `rank` better ones; rank < size().
  [[nodiscard]] double grade_at(std::size_t rank) const noexcept {
    if (fronts_.size() == 0) return values_.at(rank);
    std::size_t front = 0;
    while (fronts_.count_before(front + 1) <= rank) ++front;
    return static_cast<double>(front);
  }

  static bool is_broken(std::span<const double> scores) noexcept {
    for (double score : scores)
      if (std::isnan(score)) return true;
    return false;
  }

 private:
  OrderedValues values_;  // one objective
  Fronts fronts_;         // several
};

}  // namespace kolo::search

// The basin in which the best points lie, and steps towards its bottom.
//
// When very many trials run there are few generations in which to draw together, and sampling alone
// comes only n^(1/d) times closer in each, for n trials of d numbers. The best points of a
// generation tell more than which of them is best: a quadratic through them (surrogate/quadratic.h)
// has its minimum far inside their spread. Points are drawn around that minimum over a wide range
// of step lengths, so that neither a model that is right is wasted nor one that is wrong misleads
// for long.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "search/acquisition/elite_steps.h"
#include "search/acquisition/moves.h"

namespace kolo::search {

class Basin {
 public:
  /// So many of the best points are wanted; more are not looked at.
  [[nodiscard]] static std::size_t wanted(const Space& space);

  /// `points` in the order of their `values`, least first; the first `elite` give the spread.
  /// Keeps a reference to `moves` only.
  Basin(const Moves& moves, std::span<const Point> points, std::span<const double> values,
        std::size_t elite);

  /// Whether the points form one.
  [[nodiscard]] bool any() const { return bottom_.has_value(); }

  /// A point near the bottom. Only if any().
  [[nodiscard]] Point draw(Random& random) const;

 private:
  EliteSteps steps_;
  std::optional<Point> bottom_;
};

}  // namespace kolo::search

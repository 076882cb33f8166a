// Steps through a space from a known point: where a search for the best acquisition looks besides
// the prior. All points are settled and allowed.
#pragma once

#include <memory>
#include <vector>

#include "kolo/random.h"
#include "kolo/search/space.h"
#include "search/space/encoder.h"

namespace kolo::search {

/// Reflects at the ends of [0, 1], so that bounds are neither favoured nor avoided.
double reflect_into_unit(double x);

class Moves {
 public:
  explicit Moves(std::shared_ptr<const Space> space);

  /// A point near `from`: numbers move by a normal step of `scale` (in units of the prior's range),
  /// ordered values by at least one place, choices to another one. Half of the time everything
  /// moves (choices seldom), otherwise only a few parameters do.
  [[nodiscard]] Point vary(const Point& from, double scale, Random& random) const;

  /// The points that differ from `from` in one discrete parameter: the values beside an ordered
  /// one, up to `most_choices` other choices of a categorical one.
  [[nodiscard]] std::vector<Point> neighbours(const Point& from, std::size_t most_choices,
                                              Random& random) const;

  [[nodiscard]] const Encoder& encoder() const { return encoder_; }

  /// Whether every parameter is discrete.
  [[nodiscard]] bool all_discrete() const { return all_discrete_; }

 private:
  void move(Point& point, std::size_t parameter, double scale, Random& random) const;

  Encoder encoder_;  // of single parameters: the label form
  bool all_discrete_ = true;
};

}  // namespace kolo::search

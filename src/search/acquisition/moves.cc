// Steps are made in the unit cube of the encoder, where all priors are uniform, and are reflected
// at its walls. Half of the variations move all numbers a little, the other half one or two
// parameters. A step too short to leave the cell of a discrete value goes to the next value, so
// that it always changes.
#include "search/acquisition/moves.h"

#include <algorithm>
#include <cmath>

namespace kolo::search {

double reflect_into_unit(double x) {
  if (x < 0.0) x = -x;
  if (x > 1.0) x = 2.0 - x;
  return std::clamp(x, 0.0, 1.0);
}

Moves::Moves(std::shared_ptr<const Space> space)
    : encoder_(std::move(space), {.categorical = EncoderOptions::Categorical::label}) {
  for (const Parameter& parameter : encoder_.space().parameters())
    all_discrete_ = all_discrete_ && parameter.is_discrete();
}

void Moves::move(Point& point, std::size_t parameter, double scale, Random& random) const {
  const Parameter& p = encoder_.space().parameters()[parameter];
  double& entry = point[parameter];
  if (p.cardinality == 1) return;
  if (p.kind == Parameter::Kind::categorical) {
    const auto other = static_cast<double>(random.below(p.cardinality - 1));
    entry = other < entry ? other : other + 1.0;  // any but the present one
    return;
  }
  const double step = scale * random.normal();
  const double from = encoder_.to_unit(parameter, entry);
  const double moved = encoder_.from_unit(parameter, reflect_into_unit(from + step));
  if (moved != entry || !p.is_discrete()) {
    entry = moved;
    return;
  }
  // Too short a step for a discrete value: the next one on that side, or on the other at the end.
  const double cell = 1.0 / static_cast<double>(p.cardinality);
  const double side = step < 0.0 ? -cell : cell;
  entry = encoder_.from_unit(parameter, from + side);
  if (entry == point[parameter]) entry = encoder_.from_unit(parameter, from - side);
}

Point Moves::vary(const Point& from, double scale, Random& random) const {
  const Space& space = encoder_.space();
  constexpr int kTries = 8;
  std::size_t active = 0;
  for (const double entry : from) active += std::isnan(entry) ? 0 : 1;
  for (int attempt = 0; attempt < kTries; ++attempt) {
    Point point = from;
    const bool everything = random.below(2) == 0;
    const double few = active <= 1 ? 1.0 : 1.5 / static_cast<double>(active);
    bool changed = false;
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::isnan(from[i])) continue;
      const bool numeric = space.parameters()[i].kind != Parameter::Kind::categorical;
      const double chance = everything && numeric ? 1.0 : everything ? 0.5 * few : few;
      if (chance < 1.0 && random.uniform() >= chance) continue;
      move(point, i, scale, random);
      changed = true;
    }
    if (!changed) {  // one parameter at least
      std::size_t nth = random.below(std::max<std::size_t>(active, 1));
      for (std::size_t i = 0; i < point.size(); ++i)
        if (!std::isnan(from[i]) && nth-- == 0) move(point, i, scale, random);
    }
    if (space.settle(point, random)) return point;
  }
  return space.sample(random);
}

std::vector<Point> Moves::neighbours(const Point& from, std::size_t most_choices,
                                     Random& random) const {
  const Space& space = encoder_.space();
  std::vector<Point> found;
  auto add = [&](std::size_t parameter, double entry) {
    if (entry == from[parameter]) return;
    Point point = from;
    point[parameter] = entry;
    if (space.settle(point, random)) found.push_back(std::move(point));
  };
  for (std::size_t i = 0; i < from.size(); ++i) {
    const Parameter& p = space.parameters()[i];
    if (std::isnan(from[i]) || !p.is_discrete() || p.cardinality == 1) continue;
    if (p.kind != Parameter::Kind::categorical) {
      const double unit = encoder_.to_unit(i, from[i]);
      // Logarithmic cells differ in width: the value beside is found by its number if it can be.
      const double step = p.kind == Parameter::Kind::integer && p.quantum <= 0.0 ? 1.0 : p.quantum;
      for (const double side : {-1.0, 1.0}) {
        if (p.kind == Parameter::Kind::ordinal)
          add(i, space.nearest(i, from[i] + side));
        else if (step > 0.0)
          add(i, space.nearest(i, from[i] + side * step));
        else
          add(i, encoder_.from_unit(i, unit + side / static_cast<double>(p.cardinality)));
      }
      continue;
    }
    const std::uint64_t others = p.cardinality - 1;
    const bool all = others <= most_choices;
    for (std::uint64_t k = 0; k < std::min<std::uint64_t>(others, most_choices); ++k) {
      const double other = static_cast<double>(all ? k : random.below(others));
      add(i, other < from[i] ? other : other + 1.0);
    }
  }
  return found;
}

}  // namespace kolo::search

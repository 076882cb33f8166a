#include "search/sampler/variation.h"

#include <algorithm>
#include <cmath>

#include "kolo/random.h"

namespace kolo::search {
namespace {

constexpr int kVariationTries = 50;

}  // namespace

Point mutate_one(const Space& space, const Point& parent, Random& random) {
  std::vector<std::size_t> changeable;
  for (std::size_t i = 0; i < space.size(); ++i)
    if (!std::isnan(parent[i]) && space.parameters()[i].cardinality != 1) changeable.push_back(i);
  for (int attempt = 0; attempt < kVariationTries && !changeable.empty(); ++attempt) {
    const std::size_t i = changeable[random.below(changeable.size())];
    Point child = parent;
    child[i] = space.sample_parameter(i, random);
    if (child[i] != parent[i] && space.settle(child, random)) return child;
  }
  return space.sample(random);
}

void change_one(const Space& space, Point& point, const std::vector<std::size_t>& stay,
                Random& random) {
  std::vector<std::size_t> changeable;
  for (std::size_t i = 0; i < space.size(); ++i)
    if (!std::isnan(point[i]) && space.parameters()[i].cardinality != 1 &&
        !std::binary_search(stay.begin(), stay.end(), i))
      changeable.push_back(i);
  if (changeable.empty()) return;
  const std::size_t i = changeable[random.below(changeable.size())];
  const double before = point[i];
  for (int attempt = 0; attempt < kVariationTries && point[i] == before; ++attempt)
    point[i] = space.sample_parameter(i, random);
}

Point cross_and_mutate(const Encoder& encoder, const Point& mother, const Point& father,
                       Random& random) {
  const Space& space = encoder.space();
  const double rate = 1.0 / static_cast<double>(std::max<std::size_t>(space.size(), 1));
  for (int attempt = 0; attempt < kVariationTries; ++attempt) {
    Point child(space.size());
    for (std::size_t i = 0; i < child.size(); ++i) {
      child[i] = (random.next() & 1U) != 0 ? mother[i] : father[i];
      if (random.uniform() >= rate || std::isnan(child[i])) continue;
      if (space.parameters()[i].is_number())
        child[i] = encoder.from_unit(i, encoder.to_unit(i, child[i]) + 0.1 * random.normal());
      else
        child[i] = space.sample_parameter(i, random);
    }
    if (space.settle(child, random) &&
        (attempt + 1 == kVariationTries || !same_point(child, mother)))
      return child;
  }
  return space.sample(random);
}

}  // namespace kolo::search

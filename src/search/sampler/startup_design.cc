#include "search/sampler/startup_design.h"

#include <numeric>

#include "kolo/random.h"

namespace kolo::search {

Point startup_point(const Encoder& encoder, std::uint64_t seed, std::uint64_t count,
                    std::uint64_t number, Random& random) {
  const Space& space = encoder.space();
  const Random source(seed);
  Point point(space.size());
  std::vector<std::uint64_t> order(count);
  for (std::size_t i = 0; i < space.size(); ++i) {
    std::iota(order.begin(), order.end(), 0);
    Random shuffling = source.stream("design", i);
    shuffling.shuffle(order);
    // The place inside of the n-th is random; it differs between the trials of a design.
    const double unit =
        (static_cast<double>(order[number]) + random.uniform()) / static_cast<double>(count);
    point[i] = encoder.from_unit(i, unit);
  }
  return space.settle(point, random) ? point : space.sample(random);
}

}  // namespace kolo::search

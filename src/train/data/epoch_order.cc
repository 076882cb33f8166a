#include "train/data/epoch_order.h"

#include <algorithm>
#include <numeric>

#include "kolo/random.h"

namespace kolo::train {

std::vector<std::size_t> samples_of_rank(const EpochOrderOptions& options, std::uint64_t epoch,
                                         std::size_t visited, int rank, int ranks) {
  std::vector<std::size_t> order(options.samples);
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (options.shuffle) Random(options.seed).stream("epoch", epoch).shuffle(order);

  const std::size_t first = std::min(visited, order.size()), left = order.size() - first;
  const auto mine = static_cast<std::size_t>(rank);
  const std::size_t count = samples_per_rank(left, ranks, rank, options.tail);
  std::vector<std::size_t> samples;
  samples.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    // Past the end it begins again with what is left: that is the padding.
    const std::size_t place = i * static_cast<std::size_t>(ranks) + mine;
    samples.push_back(order[first + place % left]);
  }
  return samples;
}

}  // namespace kolo::train

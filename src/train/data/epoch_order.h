// In which order an epoch visits the samples, and which of them belong to a rank.
//
// The order is a shuffle that depends on seed and epoch alone, so every rank computes the same.
// What has not been visited yet is dealt out like cards: place p goes to rank p % ranks. So the
// samples that all ranks visit in a step are the same whatever the number of ranks, as long as the
// global batch is the same; and after any number of steps the visited ones are a prefix of the
// order, which one number describes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kolo/torch/epochs.h"

namespace kolo::train {

struct EpochOrderOptions {
  std::size_t samples = 0;
  bool shuffle = true;
  std::uint64_t seed = 0;
  Tail tail = Tail::pad;
};

/// The samples of one rank, in order, when the first `visited` places are done.
/// Costs one shuffle of all samples.
std::vector<std::size_t> samples_of_rank(const EpochOrderOptions& options, std::uint64_t epoch,
                                         std::size_t visited, int rank, int ranks);

}  // namespace kolo::train

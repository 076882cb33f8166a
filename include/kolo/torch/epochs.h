// The arithmetic of epochs: samples and steps per rank.
#pragma once

#include <cstddef>

namespace kolo {

/// What happens to the samples that do not divide evenly among the ranks.
enum class Tail {
  pad,     ///< some are visited twice, so that all ranks have equally many
  drop,    ///< some are left out, so that all ranks have equally many
  uneven,  ///< every sample exactly once; the first ranks may have one more (they end with join())
};

/// How many samples `rank` visits in an epoch. Throws invalid_argument for a bad rank.
[[nodiscard]] std::size_t samples_per_rank(std::size_t samples, int ranks, int rank, Tail tail);

/// Steps in an epoch of finite data, the most that any rank makes; a last batch that is not full
/// counts if `keep_partial_batch`. Throws invalid_argument for an empty batch or no ranks.
[[nodiscard]] std::size_t steps_per_epoch(std::size_t samples, std::size_t batch_per_rank,
                                          int ranks, Tail tail = Tail::pad,
                                          bool keep_partial_batch = true);

/// Endless data have no epoch by themselves: if one rank calls `steps` steps an epoch, so many
/// steps of each of `ranks` ranks see as many samples.
[[nodiscard]] std::size_t steps_per_epoch_of_endless(std::size_t steps, int ranks);

}  // namespace kolo

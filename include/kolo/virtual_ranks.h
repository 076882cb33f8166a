// Virtual ranks: the fixed shards of a step, whatever the number of ranks that compute them.
#pragma once

#include <cstdint>
#include <vector>

namespace kolo {

/// Which rank computes which of `count` virtual ranks: ranks follow each other, each has a
/// contiguous part, and the first ones have one more where it does not come out even.
class VirtualRanks {
 public:
  /// Throws invalid_argument unless 1 <= ranks <= count.
  VirtualRanks(int count, int ranks);

  [[nodiscard]] int count() const noexcept { return count_; }
  [[nodiscard]] int ranks() const noexcept { return ranks_; }
  /// Ascending; at least one.
  [[nodiscard]] std::vector<int> of(int rank) const;
  [[nodiscard]] int owner(int virtual_rank) const;

 private:
  int count_, ranks_;
};

/// The seed of what a virtual rank draws in a step: dropout, noise, augmentation. Depends on
/// nothing but its arguments.
[[nodiscard]] std::uint64_t stream_seed(std::uint64_t seed, int virtual_rank, std::uint64_t step);

/// How many virtual ranks this run has: `given` if positive, else KOLO_VIRTUAL_RANKS (`kolo run
/// --virtual-ranks`), else 0: none. Throws invalid_argument for a setting that is no such number.
[[nodiscard]] int virtual_rank_count(int given = 0);

/// What learning rates and global batches are scaled by: the number of virtual ranks, or of ranks
/// where there are no virtual ones. Throws failed_precondition before init().
[[nodiscard]] int virtual_size();

}  // namespace kolo

#include "kolo/virtual_ranks.h"

#include <numeric>

#include "base/env.h"
#include "base/errors.h"
#include "kolo/context.h"
#include "kolo/random.h"

namespace kolo {

VirtualRanks::VirtualRanks(int count, int ranks) : count_(count), ranks_(ranks) {
  if (ranks < 1 || ranks > count)
    throw_error(ErrorCode::invalid_argument,
                "{} virtual ranks cannot be shared out among {} ranks; use between 1 and {} ranks, "
                "or more virtual ranks",
                count, ranks, count);
}

std::vector<int> VirtualRanks::of(int rank) const {
  if (rank < 0 || rank >= ranks_)
    throw_error(ErrorCode::invalid_argument, "rank {} does not exist among {} ranks", rank, ranks_);
  const int even = count_ / ranks_, more = count_ % ranks_;
  std::vector<int> mine(static_cast<std::size_t>(even + (rank < more ? 1 : 0)));
  std::iota(mine.begin(), mine.end(), rank * even + std::min(rank, more));
  return mine;
}

int VirtualRanks::owner(int virtual_rank) const {
  if (virtual_rank < 0 || virtual_rank >= count_)
    throw_error(ErrorCode::invalid_argument, "virtual rank {} does not exist among {}",
                virtual_rank, count_);
  const int even = count_ / ranks_, more = count_ % ranks_;
  const int with_more = more * (even + 1);
  return virtual_rank < with_more ? virtual_rank / (even + 1)
                                  : more + (virtual_rank - with_more) / even;
}

std::uint64_t stream_seed(std::uint64_t seed, int virtual_rank, std::uint64_t step) {
  return Random(seed)
      .stream("virtual rank", static_cast<std::uint64_t>(virtual_rank))
      .stream("step", step)
      .next();
}

int virtual_rank_count(int given) {
  constexpr std::int64_t kMost = 1 << 16;
  const std::int64_t count = given != 0 ? given : setting_integer("VIRTUAL_RANKS").value_or(0);
  if (count < 0 || count > kMost)
    throw_error(ErrorCode::invalid_argument,
                "the number of virtual ranks is {}, but must be between 1 and {}", count, kMost);
  return static_cast<int>(count);
}

int virtual_size() {
  const int ranks = size();
  const int count = virtual_rank_count();
  return count > 0 ? count : ranks;
}

}  // namespace kolo

#include "kolo/torch/epochs.h"

#include "base/errors.h"

namespace kolo {
namespace {

std::size_t divide_up(std::size_t total, std::size_t part) { return (total + part - 1) / part; }

void check_ranks(int ranks) {
  if (ranks < 1)
    throw_error(ErrorCode::invalid_argument, "the number of ranks is {}, but must be at least 1",
                ranks);
}

}  // namespace

std::size_t samples_per_rank(std::size_t samples, int ranks, int rank, Tail tail) {
  check_ranks(ranks);
  if (rank < 0 || rank >= ranks)
    throw_error(ErrorCode::invalid_argument,
                "samples_per_rank: rank {} does not exist among {} ranks", rank, ranks);
  const auto size = static_cast<std::size_t>(ranks);
  switch (tail) {
    case Tail::pad: return divide_up(samples, size);
    case Tail::drop: return samples / size;
    case Tail::uneven: break;
  }
  return samples / size + (static_cast<std::size_t>(rank) < samples % size ? 1 : 0);
}

std::size_t steps_per_epoch(std::size_t samples, std::size_t batch_per_rank, int ranks, Tail tail,
                            bool keep_partial_batch) {
  check_ranks(ranks);
  if (batch_per_rank == 0)
    throw_error(ErrorCode::invalid_argument,
                "steps_per_epoch: batch_per_rank is 0, but must be at least 1");
  const std::size_t mine = samples_per_rank(samples, ranks, 0, tail);
  return keep_partial_batch ? divide_up(mine, batch_per_rank) : mine / batch_per_rank;
}

std::size_t steps_per_epoch_of_endless(std::size_t steps, int ranks) {
  check_ranks(ranks);
  return divide_up(steps, static_cast<std::size_t>(ranks));
}

}  // namespace kolo

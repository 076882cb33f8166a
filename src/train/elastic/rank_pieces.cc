#include "train/elastic/rank_pieces.h"

#include <algorithm>

#include "base/errors.h"
#include "base/frames.h"

namespace kolo::train {

void RankPieces::hand_over(Communicator& group, std::string mine) {
  const int rank = group.rank(), ranks = group.size();
  Commit next{kept_.number + 1, ranks, {}};
  if (ranks > 1) {
    std::vector<std::size_t> splits(static_cast<std::size_t>(ranks));
    splits[static_cast<std::size_t>((rank + 1) % ranks)] = mine.size();
    std::string& other = next.pieces[(rank + ranks - 1) % ranks];
    group.alltoall(mine.data(), mine.size(), 1, DataType::uint8, splits,
                   [&](std::span<const std::size_t> counts) -> void* {
                     std::size_t total = 0;
                     for (const std::size_t count : counts) total += count;
                     other.resize(total);
                     return other.data();
                   });
  }
  next.pieces[rank] = std::move(mine);
  next_ = std::move(next);
}

void RankPieces::keep() {
  if (next_.number == kept_.number + 1) kept_ = std::exchange(next_, {});
}

const std::map<int, std::string>& RankPieces::gather(Communicator& group) {
  const std::int64_t furthest = group.allreduce(kept_.number, ReduceOp::max);
  if (kept_.number != furthest)
    kept_ = next_.number == furthest ? std::exchange(next_, {}) : Commit{furthest, 0, {}};
  next_ = {};
  kept_.ranks = group.allreduce(static_cast<std::int32_t>(kept_.ranks), ReduceOp::max);
  const auto ranks = static_cast<std::size_t>(kept_.ranks);
  if (ranks == 0) return kept_.pieces;

  // Each piece is sent by the first rank that has it.
  std::vector<std::int32_t> holder(ranks, group.size());
  for (const auto& [owner, piece] : kept_.pieces)
    holder[static_cast<std::size_t>(owner)] = group.rank();
  group.allreduce(std::span(holder), ReduceOp::min);
  ByteWriter writer;
  for (std::size_t owner = 0; owner < ranks; ++owner) {
    if (holder[owner] == group.size())
      throw_error(ErrorCode::unavailable,
                  "what only rank {} had is lost, because the rank that kept a copy of it was lost "
                  "at the same time; start again from a checkpoint or a commit on disk",
                  owner);
    if (holder[owner] != group.rank()) continue;
    const std::string& piece = kept_.pieces.at(static_cast<int>(owner));
    writer.u32(static_cast<std::uint32_t>(owner)).u64(piece.size()).raw(piece);
  }
  std::string all;
  group.allgather(writer.bytes().data(), writer.bytes().size(), 1, DataType::uint8,
                  [&](std::span<const std::size_t> counts) -> void* {
                    std::size_t total = 0;
                    for (const std::size_t count : counts) total += count;
                    all.resize(total);
                    return all.data();
                  });
  ByteReader reader(all);
  for (std::size_t i = 0; i < ranks; ++i) {
    const auto owner = static_cast<int>(reader.u32());
    kept_.pieces[owner] = std::string(reader.raw(reader.u64()));
  }
  return kept_.pieces;
}

}  // namespace kolo::train

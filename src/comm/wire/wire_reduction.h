// Allreduce between the members of a WireGroup, chunk by chunk, so that sending, reducing and
// returning overlap, also with what the caller does before and after each chunk.
//
// Vocabulary: a *chunk* is a range of elements that passes through as one; its *parts* are the
// members' contributions; its *owner* reduces. Two ways:
//   owned   every chunk is cut into one slice per member; parts go to the slice's owner, who
//   reduces
//           them in member order and sends the result to all: 2 steps, 2·(n-1)/n·N bytes sent
//   shared  every member sends its part of the whole chunk to all, and each reduces all of it:
//           1 step, (n-1)·N bytes sent; for two members that is not more than owned
// 16-bit floats travel as they are and are accumulated in float32 by reduce().
// With a tree (tree_order.h) a member's part is as many slices as it has blocks.
//
// Steps for chunk k, in this order on every member: start(k), reduce(k-1), finish(k-2).
// A member can be ahead of another by little: it cannot reduce(k) before the other one started k.
// So when it sends parts of chunk k + 2, the other has started k at least; receives are posted that
// far ahead and nothing arrives unexpected.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/slices.h"
#include "comm/wire/wire_group.h"

namespace kolo::comm {

class WireReduction {
 public:
  static constexpr std::size_t kLag = 1;  ///< chunks between start and reduce, reduce and finish

  /// Chunks of `chunk` elements, the last one shorter; `count` in all, the same on every member.
  /// `stride`: bytes between the blocks of a tree.
  WireReduction(WireGroup& group, const Reduction& how, std::size_t count, std::size_t chunk,
                std::size_t stride = 0);

  [[nodiscard]] std::size_t chunks() const noexcept { return chunks_; }
  [[nodiscard]] std::size_t count_of(std::size_t k) const noexcept;

  /// Sends this member's part of chunk k. `input` and `output` (may be the same) must stay until
  /// finish(k).
  void start(std::size_t k, const void* input, void* output);
  void reduce(std::size_t k);
  /// Afterwards output is complete.
  void finish(std::size_t k);

  /// How many elements a chunk should have, of `count` in all. `overlaps`: the caller has work of
  /// its own to do between the steps.
  static std::size_t chunk_for(std::size_t count, std::size_t element_bytes, int members,
                               bool overlaps);

 private:
  static constexpr std::size_t kSlots = 2 * kLag + 2;

  struct Slot {
    const std::byte* input = nullptr;
    std::byte* output = nullptr;
    WireGroup::Tickets parts;    // arriving, by member
    WireGroup::Tickets sent;     // parts of mine on their way
    WireGroup::Tickets results;  // arriving and leaving
  };

  [[nodiscard]] bool is_shared() const noexcept { return is_shared_; }
  /// What member `owner` reduces of chunk k.
  [[nodiscard]] Slice slice(std::size_t k, int owner) const noexcept;
  [[nodiscard]] std::size_t blocks_of(int member) const noexcept;
  [[nodiscard]] std::byte* part(std::size_t k, int from, std::size_t block) noexcept;
  /// Where the slice that this member reduces is, of a block.
  [[nodiscard]] const void* own_slice(std::size_t k, int from, std::size_t block) noexcept;
  void expect_parts(std::size_t k);

  WireGroup& group_;
  const Reduction how_;
  const std::size_t element_, count_, chunk_, chunks_;
  const bool is_shared_;
  const std::size_t stride_;              // between blocks
  std::size_t part_bytes_;                // room for a slice of a block
  std::vector<std::size_t> first_block_;  // by member, and the number of all
  std::byte* scratch_;
  Slot slots_[kSlots];
  std::vector<const void*> inputs_;
};

}  // namespace kolo::comm

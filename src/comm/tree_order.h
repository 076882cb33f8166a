// The order of additions in a binary tree over numbered leaves, whoever has the leaves.
//
// Floating-point sums depend on their order. A reduction in the order of members therefore changes
// its bits with the number of members. Here the order is that of a tree which knows the leaves
// alone, so that any members may bring any of them.
//
// Vocabulary: a *node* is a range of leaves. The root is all of them; a node splits at the largest
// power of two below its size: 7 leaves are (0123)((45)6). A member adds the leaves that it has as
// far as they are whole nodes; each such node is a *block* that it brings. Blocks lie one after the
// other in a member's memory, block_stride() bytes apart. Blocks of all members are then pushed on
// a stack in the order of their leaves, and after some pushes the upper two are added a few times:
// these are the *steps*.
//
// What a member of n has of V leaves, if contiguous, is at most 2·log2(V) blocks, and one when V is
// n times a power of two.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "comm/group.h"

namespace kolo::comm {

class TreeOrder {
 public:
  struct Step {
    int member;
    int block;   ///< of that member
    int merges;  ///< how often the upper two are added after it was pushed
  };

  /// `leaves_of[m]`: the leaves of member m, ascending. No leaf may be there twice; if some are
  /// missing there may be several roots.
  TreeOrder(int leaves, const std::vector<std::vector<int>>& leaves_of);

  [[nodiscard]] int leaves() const noexcept { return leaves_; }
  [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
  [[nodiscard]] int roots() const noexcept { return roots_; }
  [[nodiscard]] int blocks_of(int member) const {
    return blocks_[static_cast<std::size_t>(member)];
  }
  [[nodiscard]] int most_blocks() const noexcept { return most_blocks_; }
  /// Whether it is the order in which two members, or one, add anyway.
  [[nodiscard]] bool is_plain(DataType type) const noexcept;
  /// On the stack at once, at the most.
  [[nodiscard]] int depth() const noexcept { return depth_; }
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return fingerprint_; }

 private:
  int leaves_, roots_ = 0, most_blocks_ = 0, depth_ = 0;
  std::vector<int> blocks_;
  std::vector<Step> steps_;
  std::uint64_t fingerprint_ = 0;
};

/// How a member adds its own leaves, in places 0, 1, … of a stack: the i-th is pushed, then the
/// upper two are added merges[i] times. What is left are its blocks, in places 0 … blocks - 1.
struct Fold {
  std::vector<int> merges;
  int places = 0;
  int blocks = 0;
};
[[nodiscard]] Fold fold_of(int leaves, std::span<const int> mine);

/// Bytes between the blocks of a member.
[[nodiscard]] inline std::size_t block_stride(std::size_t count, DataType type) {
  return (count * size_of(type) + 63) / 64 * 64;
}

/// inputs[i] is the block of step i. If there is one root, every output receives it; otherwise
/// output i receives root i. An output may be the memory of an input. 16-bit floats are rounded
/// after each addition, so that it does not matter who made it. `how` is a sum without prescale;
/// what follows the sum applies to each root.
void reduce_tree(const TreeOrder& order, std::span<const void* const> inputs,
                 std::span<void* const> outputs, std::size_t count, const Reduction& how);

}  // namespace kolo::comm

// Scratch memory holds the parts of kSlots chunks; chunk k uses slot k % kSlots. Receives for the
// parts of the first chunks are posted in the constructor, and those of chunk k + kSlots as soon as
// chunk k is reduced and its memory is free again. Sends go round the ring, each member beginning
// with its right neighbour, so that not all send to the same member at once.
#include "comm/wire/wire_reduction.h"

#include <algorithm>

#include "comm/reduce_kernels.h"
#include "comm/tree_order.h"

namespace kolo::comm {
namespace {

/// What a member reduces at a time: small enough for its cache, large enough that the trips and
/// wake-ups between chunks do not count (at half of this they cost a fifth more), and a multiple of
/// what the TCP wire sends as one put.
constexpr std::size_t kPartBytes = 256'000;

}  // namespace

std::size_t WireReduction::chunk_for(std::size_t count, std::size_t element_bytes, int members,
                                     bool overlaps) {
  const std::size_t usual = static_cast<std::size_t>(members) * kPartBytes / element_bytes;
  // The trips of a second chunk cost more than it gains by overlapping, up to here.
  const std::size_t alone = (overlaps ? 1 : 2) * usual + usual / 8;
  return count <= alone ? std::max<std::size_t>(count, 1) : usual;
}

WireReduction::WireReduction(WireGroup& group, const Reduction& how, std::size_t count,
                             std::size_t chunk, std::size_t stride)
    : group_(group),
      how_(how),
      element_(size_of(how.type)),
      count_(count),
      chunk_(chunk),
      chunks_((count + chunk - 1) / chunk),
      is_shared_(count * element_ * static_cast<std::size_t>(group.size() - 1) *
                     static_cast<std::size_t>(how.tree != nullptr ? how.tree->most_blocks() : 1) <=
                 group.one_trip_bytes()),
      stride_(stride),
      first_block_{0} {
  for (int r = 0; r < group_.size(); ++r)
    first_block_.push_back(
        first_block_.back() +
        (how_.tree != nullptr ? static_cast<std::size_t>(how_.tree->blocks_of(r)) : 1));
  part_bytes_ = 0;
  for (int r = 0; r < group_.size(); ++r)
    part_bytes_ = std::max(part_bytes_, slice(0, r).count * element_);
  part_bytes_ = (part_bytes_ + 63) / 64 * 64;
  scratch_ = group_.parts_.get(kSlots * first_block_.back() * part_bytes_);
  for (std::size_t k = 0; k < std::min(kSlots, chunks_); ++k) expect_parts(k);
}

std::size_t WireReduction::count_of(std::size_t k) const noexcept {
  return std::min(chunk_, count_ - k * chunk_);
}

Slice WireReduction::slice(std::size_t k, int owner) const noexcept {
  const std::size_t count = count_of(k);
  if (is_shared()) return {0, count};
  return slice_of(count, element_, group_.size(), owner);
}

std::size_t WireReduction::blocks_of(int member) const noexcept {
  const auto m = static_cast<std::size_t>(member);
  return first_block_[m + 1] - first_block_[m];
}

std::byte* WireReduction::part(std::size_t k, int from, std::size_t block) noexcept {
  return scratch_ + ((k % kSlots) * first_block_.back() +
                     first_block_[static_cast<std::size_t>(from)] + block) *
                        part_bytes_;
}

const void* WireReduction::own_slice(std::size_t k, int from, std::size_t block) noexcept {
  if (from != group_.rank()) return part(k, from, block);
  return slots_[k % kSlots].input + block * stride_ + slice(k, from).first * element_;
}

void WireReduction::expect_parts(std::size_t k) {
  const Slice mine = slice(k, group_.rank());
  if (mine.count == 0) return;
  for (int r = 0; r < group_.size(); ++r)
    for (std::size_t b = 0; r != group_.rank() && b < blocks_of(r); ++b)
      slots_[k % kSlots].parts.push_back(
          group_.post_recv(r, WireGroup::kPart, part(k, r, b), mine.count * element_));
}

void WireReduction::start(std::size_t k, const void* input, void* output) {
  Slot& slot = slots_[k % kSlots];
  slot.input = static_cast<const std::byte*>(input);
  slot.output = static_cast<std::byte*>(output);
  const int n = group_.size();
  for (int i = 1; i < n; ++i) {
    const int to = (group_.rank() + i) % n;
    const Slice theirs = slice(k, to);
    if (theirs.count == 0) continue;
    // The result may be expected where the input still lies: its owner sends it only after it has
    // all of the input.
    if (!is_shared())
      slot.results.push_back(group_.post_recv(
          to, WireGroup::kResult, slot.output + theirs.first * element_, theirs.count * element_));
    for (std::size_t b = 0; b < blocks_of(group_.rank()); ++b)
      slot.sent.push_back(group_.post_send(to, WireGroup::kPart,
                                           slot.input + b * stride_ + theirs.first * element_,
                                           theirs.count * element_));
  }
}

void WireReduction::reduce(std::size_t k) {
  Slot& slot = slots_[k % kSlots];
  const int n = group_.size();
  const Slice mine = slice(k, group_.rank());
  group_.wait_all(slot.parts);
  // A shared chunk is written where it was sent from.
  if (is_shared()) group_.wait_all(slot.sent);
  if (mine.count != 0) {
    inputs_.clear();
    void* const output = slot.output + mine.first * element_;
    if (how_.tree != nullptr) {
      for (const TreeOrder::Step& step : how_.tree->steps())
        inputs_.push_back(own_slice(k, step.member, static_cast<std::size_t>(step.block)));
      reduce_tree(*how_.tree, inputs_, {&output, 1}, mine.count, how_);
    } else {
      for (int r = 0; r < n; ++r) inputs_.push_back(own_slice(k, r, 0));
      comm::reduce(inputs_, {&output, 1}, mine.count, how_);
    }
    if (!is_shared())
      for (int i = 1; i < n; ++i)
        slot.results.push_back(group_.post_send((group_.rank() + i) % n, WireGroup::kResult, output,
                                                mine.count * element_));
  }
  if (k + kSlots < chunks_) expect_parts(k + kSlots);
}

void WireReduction::finish(std::size_t k) {
  Slot& slot = slots_[k % kSlots];
  group_.wait_all(slot.sent);
  group_.wait_all(slot.results);
}

}  // namespace kolo::comm

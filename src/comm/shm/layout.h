// The layout of shared memory: one Seat per member of a group, in the segment of that member.
//
// Every word has one writer, the owner of the seat, except `taken` of a channel, which its receiver
// writes, and the numbers of sleepers, which anybody who is about to sleep changes. Words that
// different ranks write are at least two cache lines apart.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "comm/group.h"

namespace kolo::comm {

inline constexpr std::size_t kLinePair = 128;

/// Payload that travels in the synchronisation line itself.
inline constexpr std::size_t kSmallPayload = 48;
/// Payload that travels beside the card. Beyond it, moving slices beats everybody reading all.
inline constexpr std::size_t kEagerPayload = 4096;
/// Staging for data that is not in shared memory; two of these are in flight. Half of a typical L2.
inline constexpr std::size_t kStageBytes = 512 * 1024;
/// Capacity of a point-to-point channel.
inline constexpr std::size_t kChannelBytes = 128 * 1024;

/// What a member shows at a meeting. `sequence` is written last; a reader that sees it sees all.
/// The other half of the line pair stays empty: processors fetch pairs, and whatever lay there
/// would be taken away from its writer at each meeting.
struct alignas(kLinePair) Slot {
  std::atomic<std::uint64_t> sequence{0};
  std::uint64_t signature = 0;
  std::byte small[kSmallPayload];
};
static_assert(sizeof(Slot) == kLinePair);

/// The rest of what a member shows; read only by operations that need it.
struct alignas(kLinePair) CardSlot {
  Card card;
};

/// A word that others wait for, and how many of them sleep.
struct alignas(kLinePair) Signal {
  std::atomic<std::uint64_t> value{0};
  alignas(kLinePair) std::atomic<std::uint32_t> sleepers{0};
};

/// A byte stream from the seat's owner to one other member.
struct alignas(kLinePair) Channel {
  Signal written;  // by the owner
  Signal taken;    // by the receiver
  alignas(kLinePair) std::byte ring[kChannelBytes];
};

struct Seat {
  /// Meetings alternate between the slots: whoever writes slot n+2 has met everybody at n+1, so
  /// nobody reads n any more. The cards and the eager payloads alternate with them.
  Slot slots[2];
  CardSlot cards[2];
  /// For the slots' sequences. Nobody waits for n-1 while another waits for n, so one will do.
  alignas(kLinePair) std::atomic<std::uint32_t> slot_sleepers{0};
  /// Counts the steps of bulk operations that the owner has finished, over the group's life.
  Signal steps;
  /// A number that a bulk operation needs from everybody before it starts.
  alignas(kLinePair) std::uint64_t hint = 0;
  /// The owner has left the group (1), or has given a member up (2 + that member).
  alignas(kLinePair) std::atomic<std::uint32_t> gone{0};
  /// Members who will not look at this seat again; when all have said so its memory is free.
  std::atomic<std::uint32_t> farewells{0};
  alignas(kLinePair) std::byte eager[2][kEagerPayload];
  alignas(4096) std::byte stage[2][kStageBytes];
  /// Followed by one Channel per member.

  [[nodiscard]] Channel& channel(int to) noexcept {
    return reinterpret_cast<Channel*>(this + 1)[to];
  }
  static constexpr std::size_t bytes_for(int members) {
    return sizeof(Seat) + static_cast<std::size_t>(members) * sizeof(Channel);
  }
};
static_assert(sizeof(Seat) % kLinePair == 0);

}  // namespace kolo::comm

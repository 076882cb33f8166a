// Writing cards, and saying in words how cards of different ranks do not fit.
#pragma once

#include <string>

#include "comm/group.h"
#include "kolo/error.h"

namespace kolo::comm {

/// Fields of a card that must be equal on all ranks.
enum class Agree { all, all_but_count };

/// Fills in the signature. `salt` stands for whatever else must agree (a list of tensors, say).
void sign(Card& card, Agree what, std::uint64_t salt = 0);

/// Why a rank refuses to take part.
enum class Refusal : std::uint8_t { wrong_arguments = 0, no_room = 1 };

/// A card that fits nobody's: shown by a rank whose call is wrong, or that has no room for the
/// result, so that the others do not wait for it.
Card refusal(OpKind kind, Refusal why = Refusal::wrong_arguments);

/// Who brought what, in one line. Only for exchanges that did not agree.
[[nodiscard]] Error mismatch(const Exchanged& all, int size);

/// A good 64-bit mix of two numbers (the finaliser of splitmix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2)));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace kolo::comm

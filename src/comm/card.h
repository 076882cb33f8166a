// Writing cards, and saying in words how cards of different ranks do not fit.
#pragma once

#include <string>

#include "comm/group.h"

namespace kolo::comm {

/// Fields of a card that must be equal on all ranks.
enum class Agree { all, all_but_count };

/// Fills in the signature. `salt` stands for whatever else must agree (a list of tensors, say).
void sign(Card& card, Agree what, std::uint64_t salt = 0);

/// A card that fits nobody's: shown by a rank whose call is wrong, so that the others do not wait
/// for it.
Card refusal(OpKind kind);

/// One line on who brought what. Only for exchanges that did not agree.
std::string describe_mismatch(const Exchanged& all, int size);

/// A good 64-bit mix of two numbers (the finaliser of splitmix64).
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = (a ^ (b + 0x9e3779b97f4a7c15ULL + (a << 6) + (a >> 2)));
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace kolo::comm

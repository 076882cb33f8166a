// Filling in cards, and describing in words how the cards of different ranks differ.
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

/// A card that fits nobody's: shown by a rank whose call is wrong, or that has no memory for the
/// result, so that the others do not wait for it.
Card refusal(OpKind kind, Refusal why = Refusal::wrong_arguments);

/// Who brought what, in one line. Only for exchanges that did not agree.
[[nodiscard]] Error mismatch(const Exchanged& all, int size);

}  // namespace kolo::comm

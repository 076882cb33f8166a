// The text of a "resume" event: the slot that the trial runs on now, and the one before. The
// timeline of the HTML report parses it.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <optional>
#include <string>

namespace kolo::tune {

struct SlotMove {
  int to = 0, from = 0;
};

inline std::string slot_move_text(SlotMove move, const std::string& checkpoint) {
  return fmt::format("on slot {}, before on slot {}{}", move.to, move.from,
                     checkpoint.empty() ? "" : ", from " + checkpoint);
}

inline std::optional<SlotMove> slot_move_in(const std::string& text) {
  SlotMove move;
  if (std::sscanf(text.c_str(), "on slot %d, before on slot %d", &move.to, &move.from) != 2)
    return std::nullopt;
  return move;
}

}  // namespace kolo::tune

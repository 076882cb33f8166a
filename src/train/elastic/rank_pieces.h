// What only one rank has of a value, kept so that any one rank may be lost: with each commit every
// rank hands its piece to the next rank, which keeps a copy of it.
//
// A commit counts when all ranks have handed over: its pieces wait until keep(). A rank that was
// stopped in between still has them, in case that others have made the commit.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "kolo/communicator.h"

namespace kolo::train {

class RankPieces {
 public:
  /// Of the commit that is about to be made. Collective.
  void hand_over(Communicator& group, std::string mine);
  /// In that commit no rank has anything of its own.
  void hand_over_nothing() { next_ = {kept_.number + 1, 0, {}}; }
  /// The commit is made.
  void keep();
  /// The pieces of the furthest commit of this group's ranks, by the rank that had each; none if
  /// there were none. From then on every rank has them all, and counts from that commit.
  /// Collective. Throws unavailable, on every rank, if a piece is lost.
  const std::map<int, std::string>& gather(Communicator& group);
  /// What this rank has of them.
  [[nodiscard]] const std::map<int, std::string>& kept() const noexcept { return kept_.pieces; }
  [[nodiscard]] bool has_all() const noexcept {
    return kept_.pieces.size() == static_cast<std::size_t>(kept_.ranks);
  }

 private:
  struct Commit {
    std::int64_t number = 0;
    int ranks = 0;                      // that had a piece
    std::map<int, std::string> pieces;  // by rank
  };
  Commit kept_, next_;
};

}  // namespace kolo::train

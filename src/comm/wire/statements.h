// Finds the rank that stalls when every rank waits for another one.
//
// The ranks that wait for a stalled rank time out, and so do the ranks that wait for them. Each
// states which rank it has waited for in vain. Following these statements leads to the stalled
// rank: the one that has stated nothing.
#pragma once

#include <cstddef>
#include <vector>

namespace kolo::comm {

class Statements {
 public:
  Statements(int members, int me) : given_up_(static_cast<std::size_t>(members), -1), me_(me) {}

  /// `member` says that it has given `suspect` up.
  void hear(int member, int suspect) {
    if (suspect >= 0 && suspect < static_cast<int>(given_up_.size())) given_up_[member] = suspect;
  }
  [[nodiscard]] bool has_spoken(int member) const { return given_up_[member] >= 0; }

  /// The end of the chain that begins with `suspect`. If it leads back to this member or in a
  /// circle nobody is silent, and the suspect itself is as good an answer as any.
  [[nodiscard]] int blame(int suspect) const {
    int lost = suspect;
    for (std::size_t steps = 0; has_spoken(lost); ++steps) {
      lost = given_up_[lost];
      if (lost == me_ || steps == given_up_.size()) return suspect;
    }
    return lost;
  }

 private:
  std::vector<int> given_up_;
  int me_;
};

}  // namespace kolo::comm

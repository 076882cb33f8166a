// Who is to blame when everybody waits for somebody.
//
// When a rank stalls, those who wait for it give it up, and so do those who wait for them. Each
// says whom it has given up; the one at the end of the chain has said nothing.
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

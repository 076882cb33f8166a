// What a worker of an elastic job knows and decides: messages and signals in, answers out.
// No sockets, no clock, no threads.
#pragma once

#include <optional>

#include "comm/elastic/messages.h"

namespace kolo::comm::elastic {

/// What a member shows the others at the end of a step. The largest of all counts.
enum class Wish : std::uint32_t { go_on = 0, change = 1 };

/// What a worker that is in no group does.
enum class Next : std::uint8_t { wait, join, finish, leave };

class Member {
 public:
  // --- events -----------------------------------------------------------------------------------
  void take(const FromLauncher& message);
  /// This worker is to go: somebody sent a signal, or the launcher is gone, so that there will be
  /// no other group.
  void notice() noexcept { must_leave_ = true; }

  // --- in a group -------------------------------------------------------------------------------
  [[nodiscard]] Generation generation() const noexcept { return generation_; }
  /// At the end of a step; generations begin at 1.
  [[nodiscard]] Wish wish() const noexcept {
    return must_leave_ || asked_to_change_ >= generation_ ? Wish::change : Wish::go_on;
  }
  /// The group is left, whatever the reason. Returns what to tell the launcher.
  [[nodiscard]] FromWorker leave_group(int blamed) const;

  // --- between groups ---------------------------------------------------------------------------
  [[nodiscard]] Next next() const noexcept;
  /// When next() says join: enters that group.
  GroupPlan join();

 private:
  Generation generation_ = 0;       // of the group that this worker is in, or was in last
  Generation asked_to_change_ = 0;  // the youngest that the launcher wants changed
  Generation over_ = 0;
  bool must_leave_ = false;
  std::optional<GroupPlan> plan_;
};

}  // namespace kolo::comm::elastic

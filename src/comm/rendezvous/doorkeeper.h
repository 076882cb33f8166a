// Takes connections and lets in whoever proves that it knows the secret (protocol.h).
//
// It stands at every port that ranks open: the rendezvous, the leader of a process set, the TCP
// wire. Nothing of a stranger's gets past it but a handshake of at most kHandshakeLimit bytes per
// message. All handshakes are under way at once and none blocks. Strangers are dropped after a
// while. When there are too many of them, those that have said nothing go first, then the oldest;
// when no descriptors are left, only those that have said nothing. A rank that was dropped in such
// a crowd was not welcomed and tries again (caller.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "comm/rendezvous/protocol.h"

namespace kolo::comm::rendezvous {

struct DoorkeeperOptions {
  Secret secret = Secret::random();
  /// Whether such a guest is awaited; called after the hello and again after the proof.
  std::function<bool(const Hello&)> expects = [](const Hello&) { return true; };
  /// Connections that have not proved themselves: how many, and for how long. A rank needs a
  /// millisecond.
  std::size_t stranger_limit = 64;
  std::chrono::milliseconds handshake_timeout{5000};
};

/// One thread at a time.
class Doorkeeper {
 public:
  struct Guest {
    Fd socket;  ///< non-blocking; the guest has been welcomed
    Hello hello;
  };

  Doorkeeper(std::vector<Fd> listeners, DoorkeeperOptions options);

  /// Readable when admit() has something to do, also at the end of somebody's time.
  [[nodiscard]] int poll_fd() const noexcept { return epoll_.get(); }
  /// Moves all handshakes ahead, without waiting. Returns who has proved itself.
  std::vector<Guest> admit();
  [[nodiscard]] std::size_t strangers() const noexcept { return strangers_.size(); }

 private:
  using Clock = Deadline::Clock;
  using Id = std::uint64_t;
  struct Stranger {
    Fd socket;
    FrameParser parser{kHandshakeLimit};
    bool has_spoken = false;
    Hello hello;
    std::string hello_payload, challenge_payload;  // the second is empty before the hello
    Clock::time_point until;
  };

  bool watch(const Fd& fd, Id id);
  void accept_some(const Fd& listener);
  void pause_accepting();
  void resume_accepting();
  void read_from(Id id);
  /// True when the stranger has proved itself. Throws what is wrong with the message.
  bool take(Stranger& stranger, const Frame& message);
  /// The oldest of those that have said nothing; false if there is none.
  bool drop_silent();
  void drop_late();
  void set_timer();

  DoorkeeperOptions options_;
  std::vector<Fd> listeners_;
  Fd epoll_, timer_;
  std::map<Id, Stranger> strangers_;  // from the oldest to the youngest
  Id next_id_;
  bool is_paused_ = false;   // no descriptors are left, and nobody can be dropped for one
  bool has_warned_ = false;  // of that, since all who waited were let in
  std::vector<Guest> proven_;
};

}  // namespace kolo::comm::rendezvous

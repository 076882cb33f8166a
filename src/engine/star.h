// Small messages between the members of a process set and its leader, and a thread that sleeps
// until there is one.
//
// The leader (member 0) has a connection to each other member; members do not talk to each other.
// Data never travels here. A member's connection that closes is how its end is noticed while
// nobody is inside a collective.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/frames.h"
#include "kolo/communicator.h"

namespace kolo::runtime {

class Star {
 public:
  /// Collective over `members`, who meet through it once.
  Star(Communicator& members, Deadline deadline);

  struct Message {
    int from = -1;
    Frame frame;
  };
  /// A member whose connection is gone, after its last message.
  struct Closed {
    int member = -1;
    std::string reason;
  };
  /// What has come in.
  struct News {
    std::vector<Message> messages;
    std::vector<Closed> closed;
  };

  /// Sleeps until there is news, wake() was called, or the moment has come. One thread at a time.
  /// A connection on which something else than a message comes is closed.
  News wait(std::optional<Deadline::Clock::time_point> until);

  /// Ends the current or next wait(). From any thread.
  void wake() noexcept;

  /// Hands over a frame; what the connection does not take now follows during wait(). To a member
  /// that is gone: nothing. On the thread that waits.
  void send(int to, std::string_view frame);

  /// Tries to get rid of what is left, for a moment. Before the end.
  void flush(Deadline deadline);

  /// Closes all connections, which is how the others learn that nothing more comes from here. On
  /// the thread that waits.
  void close() noexcept;

 private:
  struct Link {
    int member = -1;
    Fd socket;
    FrameParser parser{kFrameLimit};
    std::string outgoing;
  };
  static constexpr std::size_t kFrameLimit = std::size_t{64} << 20;

  void lead(Communicator& members, Deadline deadline);
  void follow(Communicator& members, Deadline deadline);
  void push(Link& link);
  /// False when the other side is gone. Throws corruption.
  bool pull(Link& link, News& news);

  Fd wake_fd_;
  std::vector<Link> links_;  // leader: one per other member; member: one to the leader
};

}  // namespace kolo::runtime

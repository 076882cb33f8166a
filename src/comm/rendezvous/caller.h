// The other side of a Doorkeeper: connects, proves that it knows the secret, and is welcomed.
#pragma once

#include <string>

#include "base/deadline.h"
#include "base/fd.h"
#include "base/socket.h"
#include "comm/rendezvous/protocol.h"

namespace kolo::comm::rendezvous {

/// Reads one frame. Throws timeout, unavailable when `peer` has closed the connection, and
/// corruption for a frame over the limit.
Frame receive_frame(int socket, std::size_t limit, Deadline deadline, std::string_view peer);

/// One attempt. Several may overlap: make all, then prove() each.
class Caller {
 public:
  /// Connects and says hello. `place` names the other side in errors.
  Caller(const SocketAddress& address, Purpose purpose, int rank, Deadline deadline,
         std::string place);
  /// Waits for the welcome. Throws unavailable if the other side does not know the secret.
  Fd prove(const Secret& secret, Deadline deadline);

  /// Whether the error says that the connection was closed before the welcome, as it happens in a
  /// crowd of strangers: then it helps to try again.
  static bool was_dropped(const Error& error);

 private:
  std::string place_, hello_;
  Fd socket_;
};

}  // namespace kolo::comm::rendezvous

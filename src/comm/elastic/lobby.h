// The launcher's door for the workers of an elastic job: one connection per worker, as long as the
// worker lives. A second process that comes as the same worker is turned away: a program that a
// rank starts has its environment. No thread: whoever owns it polls and calls receive().
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/secret.h"
#include "base/socket.h"
#include "comm/elastic/messages.h"
#include "comm/rendezvous/doorkeeper.h"

namespace kolo::comm::elastic {

class Lobby {
 public:
  /// `expects` says whether a worker of that number lives.
  Lobby(const Secret& secret, const std::vector<SocketAddress>& listen,
        std::function<bool(int)> expects);
  Lobby(const Lobby&) = delete;
  Lobby& operator=(const Lobby&) = delete;

  /// In the order of `listen`, with their ports.
  [[nodiscard]] const std::vector<SocketAddress>& addresses() const noexcept { return addresses_; }

  /// Readable when receive() has something to do.
  [[nodiscard]] int poll_fd() const noexcept { return epoll_.get(); }

  struct Event {
    int worker = -1;
    FromWorker message;
  };
  /// What has come, without waiting. A worker that breaks its connection is not told here: its end
  /// is what the custodian of its host says it is.
  std::vector<Event> receive();

  /// To a worker that is not here: nothing.
  void send(int worker, const FromLauncher& message);
  /// Closes the connection of a worker that is gone for the launcher, so that nothing that it may
  /// still say counts.
  void forget(int worker);

 private:
  struct Connection {
    Fd socket;
    FrameParser parser{kMessageLimit};
    std::string outgoing;
  };

  [[nodiscard]] bool is_here(int worker) const;
  void welcome(rendezvous::Doorkeeper::Guest guest);
  bool read_from(int worker, Connection& connection, std::vector<Event>& events);
  void flush(int worker, Connection& connection);
  void watch(int worker, const Connection& connection, int operation);

  std::vector<SocketAddress> addresses_;
  Fd epoll_;
  std::map<int, Connection> connections_;
  /// It goes first: who is left by a launcher that ends must not find it listening.
  std::optional<rendezvous::Doorkeeper> door_;
};

}  // namespace kolo::comm::elastic

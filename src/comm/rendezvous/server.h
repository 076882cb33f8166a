// The rendezvous server of a job: a thread in the launcher, or in rank 0 where there is no
// launcher.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "base/secret.h"
#include "base/socket.h"
#include "comm/activity.h"
#include "comm/bootstrap.h"
#include "comm/rendezvous/doorkeeper.h"
#include "comm/rendezvous/meeting_book.h"

namespace kolo::comm::rendezvous {

struct ServerOptions {
  int size = 1;
  Secret secret = Secret::random();
  /// Where to listen; port 0 = any free one.
  std::vector<SocketAddress> listen = {SocketAddress::loopback()};
  /// A rank whose connection breaks without a goodbye is gone. For places where no launcher tells.
  bool broken_connection_is_departure = false;
  /// Called once, on the server's thread, when every rank has been there.
  std::function<void()> on_all_joined;
  /// Called on the server's thread, under its lock, when a rank tells what it does.
  std::function<void(int rank, const ActivityReport& report)> on_activity;
  /// Connections that have not proved themselves: how many, and for how long; see doorkeeper.h.
  std::size_t stranger_limit = 64;
  std::chrono::milliseconds handshake_timeout{5000};
};

/// Starts on construction, stops (closing all connections) on destruction. Functions may be called
/// from any thread.
class Server {
 public:
  explicit Server(ServerOptions options);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// In the order of ServerOptions::listen, with their ports.
  [[nodiscard]] const std::vector<SocketAddress>& addresses() const noexcept { return addresses_; }

  /// Tells every rank, and all who wait for it, that `rank` is gone.
  void announce(Departure departure);

  /// Ranks that have proved themselves at least once.
  [[nodiscard]] std::set<int> joined() const;
  /// For tests: meetings that wait for somebody, and connections of any kind.
  [[nodiscard]] std::size_t open_meetings() const;
  [[nodiscard]] std::size_t connections() const;

 private:
  /// Of a rank that has proved itself.
  struct Connection {
    Fd fd;
    Hello hello;
    FrameParser parser{kRequestLimit};
    std::string outbox;
    bool broken = false;
    bool said_goodbye = false;
  };
  using Connections = std::map<MeetingBook::Guest, Connection>;

  void run();
  [[nodiscard]] int poll_timeout_ms() const KOLO_REQUIRES(mutex_);
  void read_from(MeetingBook::Guest id, Connection& connection) KOLO_REQUIRES(mutex_);
  void handle(MeetingBook::Guest id, Connection& connection, const Frame& message)
      KOLO_REQUIRES(mutex_);
  void welcome(Doorkeeper::Guest guest) KOLO_REQUIRES(mutex_);
  void queue(Connection& connection, std::string_view bytes) KOLO_REQUIRES(mutex_);
  void flush(Connection& connection) KOLO_REQUIRES(mutex_);
  void send(const MeetingBook::Replies& replies) KOLO_REQUIRES(mutex_);
  void depart(const Departure& departure) KOLO_REQUIRES(mutex_);
  void drop_broken() KOLO_REQUIRES(mutex_);

  ServerOptions options_;
  std::vector<SocketAddress> addresses_;
  Fd wake_;

  mutable Mutex mutex_;  // held by the thread except while it sleeps
  bool stopping_ KOLO_GUARDED_BY(mutex_) = false;
  MeetingBook book_ KOLO_GUARDED_BY(mutex_);
  Connections connections_ KOLO_GUARDED_BY(mutex_);
  MeetingBook::Guest next_id_ KOLO_GUARDED_BY(mutex_) = 1;
  std::set<int> joined_ KOLO_GUARDED_BY(mutex_);
  std::vector<Departure> announced_ KOLO_GUARDED_BY(mutex_);  // not yet handled by the thread
  std::optional<Doorkeeper> door_ KOLO_GUARDED_BY(mutex_);

  std::thread thread_;
};

}  // namespace kolo::comm::rendezvous

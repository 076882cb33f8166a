// The client of the rendezvous: the side of a rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "base/socket.h"
#include "comm/bootstrap.h"
#include "comm/rendezvous/protocol.h"

namespace kolo::comm::rendezvous {

struct ClientOptions {
  SocketAddress server;
  Secret secret;
  Topology topology;
  std::string description;  ///< for describe()
  /// The rank that hosts the server: if the server goes, that rank has gone. -1 = a launcher.
  int host_rank = -1;
  /// Kept as long as this client, for example the server itself.
  std::shared_ptr<void> keep;
};

/// One connection carries news, others one meeting each at a time: overlapping meetings of several
/// threads each get their own, so that none waits behind another.
class Client final : public Bootstrap {
 public:
  /// Connects and proves itself. Throws unavailable or timeout.
  Client(ClientOptions options, Deadline deadline);
  ~Client() override;

  [[nodiscard]] const Topology& topology() const noexcept override { return options_.topology; }
  [[nodiscard]] std::string describe() const override { return options_.description; }
  std::vector<std::string> allgather(std::string_view key, const std::vector<int>& members,
                                     std::string_view mine, Deadline deadline) override;
  [[nodiscard]] int news_fd() const noexcept override { return news_.get(); }
  std::vector<Departure> take_news() override;
  void report(std::string_view activity) override;

  /// Before the client is shared: where the ranks are was not known when it connected.
  void set_topology(Topology topology) { options_.topology = std::move(topology); }

 private:
  /// Proven connections for these purposes, their handshakes overlapping.
  std::vector<Fd> connect(const std::vector<Purpose>& purposes, Deadline deadline) const;
  Fd take_idle(Deadline deadline);

  ClientOptions options_;
  Fd news_;
  FrameParser news_parser_{kRequestLimit};  // used by the thread that takes news only
  bool news_ended_ = false;                 // likewise
  std::string unsent_;                      // of a report; used by the thread that reports only
  Mutex mutex_;
  std::vector<Fd> idle_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::comm::rendezvous

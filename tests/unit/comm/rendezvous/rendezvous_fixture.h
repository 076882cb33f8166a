// A server and clients in one process, as the rendezvous tests need them.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "base/deadline.h"
#include "comm/rendezvous/client.h"
#include "comm/rendezvous/server.h"

namespace kolo::comm::rendezvous {

using namespace std::chrono_literals;

/// Looks again until `condition` holds; false after ten seconds.
inline bool eventually(const std::function<bool()>& condition) {
  const Deadline deadline = Deadline::after(10s);
  while (!condition()) {
    if (deadline.passed()) return false;
    ::poll(nullptr, 0, 1);
  }
  return true;
}

class RendezvousTest : public ::testing::Test {
 protected:
  void start(int size, ServerOptions options = {}) {
    options.size = size;
    options.secret = secret_;
    size_ = size;
    server_ = std::make_unique<Server>(std::move(options));
  }

  std::shared_ptr<Client> client(int rank, int host_rank = -1) {
    return std::make_shared<Client>(
        ClientOptions{server_->addresses()[0], secret_,
                      Topology(rank, std::vector<int>(static_cast<std::size_t>(size_), 0)), "test",
                      host_rank, nullptr},
        Deadline::after(10s));
  }

  /// News of a client, waiting for the first.
  static std::vector<Departure> wait_for_news(Client& client) {
    pollfd poll{client.news_fd(), POLLIN, 0};
    if (::poll(&poll, 1, 10'000) != 1) return {};
    return client.take_news();
  }

  Secret secret_ = Secret::random();
  int size_ = 0;
  std::unique_ptr<Server> server_;
};

}  // namespace kolo::comm::rendezvous

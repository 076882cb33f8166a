// An HTTP server that anybody can connect to but only a few may use. The number of connections and
// the size and duration of requests are limited. When all connections are taken, those of clients
// that have not shown the token are closed first.
//
// cpp-httplib parses requests and routes them. Accepting and reading are done here, because its own
// loop has no limit for the number of connections or for the time that a request takes.
#pragma once

#include <httplib.h>

#include <atomic>
#include <functional>
#include <list>
#include <thread>

#include "base/fd.h"
#include "base/mutex.h"
#include "dashboard/http_limits.h"

namespace kolo::dashboard {

class HttpServer : public httplib::Server {
 public:
  explicit HttpServer(HttpLimits limits) : limits_(limits) {}
  ~HttpServer() override { stop_serving(); }

  /// Said of a request when its head was read: whether its sender is known. Connections of others
  /// are closed first when there are too many.
  std::function<bool(const httplib::Request&)> knows;
  /// Requests whose answer goes on as long as both sides live.
  std::function<bool(const httplib::Request&)> is_stream;

  /// Serves this listening socket on threads of its own, from now on.
  void serve(Fd listener);
  /// Closes all connections and waits for their threads.
  void stop_serving();
  [[nodiscard]] bool stopping() const noexcept { return stopping_; }

 private:
  struct Connection {
    Fd socket;
    std::atomic<bool> known = false, done = false;
    std::thread thread{};
  };

  void accept_all();
  void welcome(Fd socket) KOLO_EXCLUDES(mutex_);
  void converse(Connection& connection) KOLO_EXCLUDES(mutex_);

  const HttpLimits limits_;
  Fd listener_, wakeup_;
  std::atomic<bool> stopping_ = false;
  std::thread acceptor_;
  Mutex mutex_;
  std::list<Connection> connections_ KOLO_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace kolo::dashboard

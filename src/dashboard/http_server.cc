#include "dashboard/http_server.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/deadline.h"
#include "base/errors.h"
#include "base/signals_blocked.h"
#include "base/socket.h"

namespace kolo::dashboard {
namespace {

/// One client, as cpp-httplib reads from it and writes to it.
class ClientStream final : public httplib::Stream {
 public:
  ClientStream(int socket, const HttpLimits& limits)
      : socket_(socket), limits_(limits), deadline_(Deadline::after(limits.request)) {}

  /// Waits for the first byte of a request, from which on its time counts.
  bool begin_request() {
    if (place_ == filled_ && !wait_for(POLLIN, Deadline::after(limits_.idle))) return false;
    deadline_ = Deadline::after(limits_.request);
    left_ = limits_.request_bytes;
    return true;
  }
  void begin_answer(bool is_stream) {
    is_stream_ = is_stream;
    deadline_ = Deadline::after(limits_.answer);
  }

  [[nodiscard]] bool is_readable() const override {
    return place_ < filled_ || wait_for(POLLIN, deadline_);
  }
  [[nodiscard]] bool is_writable() const override { return wait_for(POLLOUT, patience()); }

  ssize_t read(char* data, std::size_t size) override {
    if (place_ == filled_) {
      if (left_ == 0 || !wait_for(POLLIN, deadline_)) return -1;
      const auto got = ::recv(socket_, buffer_.data(), std::min(buffer_.size(), left_), 0);
      if (got <= 0) return got;
      place_ = 0;
      filled_ = static_cast<std::size_t>(got);
      left_ -= filled_;
    }
    const std::size_t count = std::min(size, filled_ - place_);
    std::memcpy(data, buffer_.data() + place_, count);
    place_ += count;
    return static_cast<ssize_t>(count);
  }
  ssize_t write(const char* data, std::size_t size) override {
    for (;;) {
      const auto sent = ::send(socket_, data, size, MSG_NOSIGNAL);
      if (sent >= 0 || (errno != EAGAIN && errno != EINTR)) return sent;
      if (!wait_for(POLLOUT, patience())) return -1;
    }
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage raw{};
    socklen_t length = sizeof raw;
    auto* const address = reinterpret_cast<sockaddr*>(&raw);
    if (::getpeername(socket_, address, &length) != 0) return;
    const auto peer = SocketAddress::from_raw(address, length);
    ip = peer.host();
    port = peer.port();
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    const auto own = local_address_of(socket_);
    ip = own.host();
    port = own.port();
  }
  [[nodiscard]] socket_t socket() const override { return socket_; }

 private:
  /// A stream has no end, but each piece of it must be taken in time.
  [[nodiscard]] Deadline patience() const {
    return is_stream_ ? Deadline::after(limits_.request) : deadline_;
  }
  [[nodiscard]] bool wait_for(short what, Deadline deadline) const {
    pollfd entry{socket_, what, 0};
    for (;;) {
      const int ready = ::poll(&entry, 1, deadline.poll_timeout_ms());
      if (ready > 0) return (entry.revents & what) != 0;
      if (ready == 0 || errno != EINTR) return false;
    }
  }

  int socket_;
  const HttpLimits& limits_;
  Deadline deadline_;
  bool is_stream_ = false;
  std::size_t left_ = 0;  // bytes that the request may still have
  std::array<char, 4096> buffer_;
  std::size_t place_ = 0, filled_ = 0;
};

}  // namespace

void HttpServer::serve(Fd listener) {
  listener_ = std::move(listener);
  svr_sock_ = listener_.get();  // what cpp-httplib takes as the sign that it is not to stop
  wakeup_ = Fd(::eventfd(0, EFD_CLOEXEC));
  if (!wakeup_.valid()) throw_errno("cannot make an event descriptor");
  // Signals are for the thread that waits for them.
  const SignalsBlocked signals_blocked;
  acceptor_ = std::thread([this] { accept_all(); });
}

void HttpServer::accept_all() {
  std::array<pollfd, 2> waiting{pollfd{listener_.get(), POLLIN, 0},
                                pollfd{wakeup_.get(), POLLIN, 0}};
  while (!stopping_) {
    ::poll(waiting.data(), waiting.size(), -1);
    if (stopping_) return;
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.valid())
      welcome(std::move(socket));
    else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));  // until others have ended
  }
}

void HttpServer::welcome(Fd socket) {
  const MutexLock lock(mutex_);
  connections_.remove_if([](Connection& connection) {
    if (!connection.done) return false;
    connection.thread.join();
    return true;
  });
  if (connections_.size() >= limits_.connections) {
    const auto stranger = std::find_if(connections_.begin(), connections_.end(),
                                       [](const Connection& one) { return !one.known; });
    // Those that were told to go may not have gone yet; there is an end to waiting for them, too.
    if (stranger == connections_.end() || connections_.size() >= 2 * limits_.connections) return;
    stranger->known = true;  // it is on its way out and makes no room a second time
    ::shutdown(stranger->socket.get(), SHUT_RDWR);
  }
  set_no_delay(socket.get());
  auto& connection = connections_.emplace_back();
  connection.socket = std::move(socket);
  try {
    connection.thread = std::thread([this, &connection] { converse(connection); });
  } catch (const std::system_error&) {  // no more threads on this machine
    connections_.pop_back();
  }
}

void HttpServer::converse(Connection& connection) {
  ClientStream stream(connection.socket.get(), limits_);
  bool closed = false, has_head = false;
  const auto take_head = [&](httplib::Request& request) {
    // The clients are on this machine: compressing costs more than it saves, and holds events back.
    request.headers.erase("Accept-Encoding");
    // A request for a thousand ranges would be answered with a thousand copies in memory.
    request.ranges.clear();
    has_head = true;
    if (knows && knows(request)) connection.known = true;
    stream.begin_answer(is_stream && is_stream(request));
  };
  // Newer versions of cpp-httplib want to be told both addresses.
  const auto process = [&](auto& server) {
    if constexpr (requires { server.process_request(stream, false, closed, take_head); }) {
      return server.process_request(stream, false, closed, take_head);
    } else {
      std::string remote, local;
      int remote_port = 0, local_port = 0;
      stream.get_remote_ip_and_port(remote, remote_port);
      stream.get_local_ip_and_port(local, local_port);
      return server.process_request(stream, remote, remote_port, local, local_port, false, closed,
                                    take_head);
    }
  };
  while (!stopping_ && !closed && stream.begin_request()) {
    has_head = false;
    if (!process(*this)) break;
    // After a head that cannot be read nobody knows where the next request begins.
    if (!has_head) break;
  }
  // Closed at once: a client whose request is not read to its end would wait for it to be taken.
  const MutexLock lock(mutex_);
  connection.socket.reset();
  connection.done = true;
}

void HttpServer::stop_serving() {
  if (!acceptor_.joinable()) return;
  stopping_ = true;
  svr_sock_ = INVALID_SOCKET;
  const std::uint64_t one = 1;
  static_cast<void>(::write(wakeup_.get(), &one, sizeof one));
  acceptor_.join();
  listener_.reset();
  std::list<Connection> last;
  {
    const MutexLock lock(mutex_);
    for (auto& connection : connections_) ::shutdown(connection.socket.get(), SHUT_RDWR);
    last.swap(connections_);
  }
  for (auto& connection : last) connection.thread.join();
}

}  // namespace kolo::dashboard

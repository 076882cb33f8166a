// One epoll set has the listeners, a timer and the strangers in it, so that the owner polls a
// single descriptor. Strangers are numbered as they come and all have the same time, so that the
// first in the map is the next whose time is up. When no descriptors are left, the listeners leave
// the set for a while: they stay readable, and the owner would spin.
#include "comm/rendezvous/doorkeeper.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include "base/errors.h"
#include "base/log.h"
#include "base/socket.h"

namespace kolo::comm::rendezvous {
namespace {

/// Between attempts to take connections when no descriptors are left.
constexpr auto kRetryAfter = std::chrono::milliseconds(50);
/// A new connection has room for the few bytes of a handshake.
constexpr std::chrono::milliseconds kAtOnce{0};
/// Of one listener, before others get their turn.
constexpr int kAcceptAtOnce = 32;

}  // namespace

// Listeners have the numbers 0 … n - 1 in the epoll set, the timer has n, strangers those after it.
Doorkeeper::Doorkeeper(std::vector<Fd> listeners, DoorkeeperOptions options)
    : options_(std::move(options)),
      listeners_(std::move(listeners)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)),
      next_id_(listeners_.size() + 1) {
  bool is_fine = epoll_.valid() && timer_.valid() && watch(timer_, listeners_.size());
  for (std::size_t i = 0; i < listeners_.size(); ++i) is_fine = is_fine && watch(listeners_[i], i);
  if (!is_fine) throw_errno("cannot wait for connections");
}

bool Doorkeeper::watch(const Fd& fd, Id id) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = id;
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd.get(), &event) == 0;
}

std::vector<Doorkeeper::Guest> Doorkeeper::admit() {
  std::array<epoll_event, 64> events{};
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    const Id id = events[static_cast<std::size_t>(i)].data.u64;
    if (id < listeners_.size()) {
      if (!is_paused_) accept_some(listeners_[id]);
    } else if (id == listeners_.size()) {
      std::uint64_t expirations = 0;
      [[maybe_unused]] const auto got = ::read(timer_.get(), &expirations, sizeof expirations);
      resume_accepting();
    } else if (strangers_.contains(id)) {
      read_from(id);
    }
  }
  drop_late();
  while (strangers_.size() > options_.stranger_limit)
    if (!drop_silent()) strangers_.erase(strangers_.begin());
  set_timer();
  return std::exchange(proven_, {});
}

void Doorkeeper::accept_some(const Fd& listener) {
  for (int i = 0; i < kAcceptAtOnce; ++i) {
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) {
        has_warned_ = false;
        return;
      }
      // No descriptor is left, which accept(2) says even if nobody waits.
      pollfd waiting{listener.get(), POLLIN, 0};
      if (::poll(&waiting, 1, 0) == 0) return;
      if (drop_silent()) continue;  // its descriptor serves the next one
      pause_accepting();
      return;
    }
    set_no_delay(socket.get());
    const Id id = next_id_++;
    if (!watch(socket, id)) return;
    Stranger& stranger = strangers_[id];
    stranger.socket = std::move(socket);
    stranger.until = Clock::now() + options_.handshake_timeout;
    read_from(id);  // a rank says hello at once
  }
}

/// The listeners stay readable, so they are left alone for a while.
void Doorkeeper::pause_accepting() {
  if (std::exchange(is_paused_, true)) return;
  if (!std::exchange(has_warned_, true))
    log::warning("no descriptors are left for connections of ranks; raise the limit (ulimit -n)");
  for (const Fd& listener : listeners_)
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, listener.get(), nullptr);
}

void Doorkeeper::resume_accepting() {
  if (!std::exchange(is_paused_, false)) return;
  for (std::size_t i = 0; i < listeners_.size(); ++i) watch(listeners_[i], i);
}

void Doorkeeper::read_from(Id id) {
  Stranger& stranger = strangers_.at(id);
  char chunk[4 * kHandshakeLimit];
  const ssize_t got = ::recv(stranger.socket.get(), chunk, sizeof chunk, 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
  bool is_proven = false;
  try {
    if (got <= 0) throw_error(ErrorCode::unavailable, "it was closed");
    stranger.has_spoken = true;
    stranger.parser.feed({chunk, static_cast<std::size_t>(got)});
    while (auto message = stranger.parser.next()) {
      if (is_proven) throw_error(ErrorCode::corruption, "it said more before it was welcomed");
      is_proven = take(stranger, *message);
    }
    if (is_proven && stranger.parser.pending() > 0)
      throw_error(ErrorCode::corruption, "it said more before it was welcomed");
    if (is_proven)
      send_all(stranger.socket.get(), frame(Message::welcome, ""), Deadline::after(kAtOnce), "it");
  } catch (const Error& error) {
    log::debug("dropped a connection that did not prove itself: {}", error.message());
    // A rank of another version would take silence for a crowd and try again until its time is up.
    if (error.code() == ErrorCode::unsupported) {
      const std::string refusal = frame(Message::goodbye, "");
      ::send(stranger.socket.get(), refusal.data(), refusal.size(), MSG_NOSIGNAL);
    }
    strangers_.erase(id);
    return;
  }
  if (!is_proven) return;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, stranger.socket.get(), nullptr);
  proven_.push_back({std::move(stranger.socket), std::move(stranger.hello)});
  strangers_.erase(id);
}

bool Doorkeeper::take(Stranger& stranger, const Frame& message) {
  const auto type = static_cast<Message>(message.type);
  if (stranger.challenge_payload.empty() && type == Message::hello) {
    stranger.hello = decode_hello(message.payload);
    if (!options_.expects(stranger.hello))
      throw_error(ErrorCode::corruption, "rank {} is not awaited", stranger.hello.rank);
    stranger.hello_payload = message.payload;
    stranger.challenge_payload = encode(make_challenge(options_.secret, message.payload));
    send_all(stranger.socket.get(), frame(Message::challenge, stranger.challenge_payload),
             Deadline::after(kAtOnce), "it");
    return false;
  }
  if (stranger.challenge_payload.empty() || type != Message::proof)
    throw_error(ErrorCode::corruption, "message {} does not belong here", message.type);
  if (!check_answer(options_.secret, stranger.hello_payload, stranger.challenge_payload,
                    message.payload))
    throw_error(ErrorCode::corruption, "wrong proof");
  if (!options_.expects(stranger.hello))
    throw_error(ErrorCode::corruption, "rank {} is not awaited any longer", stranger.hello.rank);
  return true;
}

bool Doorkeeper::drop_silent() {
  const auto silent = std::find_if(strangers_.begin(), strangers_.end(),
                                   [](const auto& entry) { return !entry.second.has_spoken; });
  if (silent == strangers_.end()) return false;
  log::debug("dropped a connection that said nothing, in a crowd of them");
  strangers_.erase(silent);
  return true;
}

void Doorkeeper::drop_late() {
  const auto now = Clock::now();
  while (!strangers_.empty() && strangers_.begin()->second.until <= now)
    strangers_.erase(strangers_.begin());
}

void Doorkeeper::set_timer() {
  std::optional<Clock::time_point> next;
  if (!strangers_.empty()) next = strangers_.begin()->second.until;
  if (is_paused_)
    next = std::min(next.value_or(Clock::time_point::max()), Clock::now() + kRetryAfter);
  itimerspec when{};
  if (next) {
    const auto left =
        std::max<std::chrono::nanoseconds>(*next - Clock::now(), std::chrono::nanoseconds(1));
    when.it_value.tv_sec = std::chrono::floor<std::chrono::seconds>(left).count();
    when.it_value.tv_nsec = (left % std::chrono::seconds(1)).count();
  }
  ::timerfd_settime(timer_.get(), 0, &when, nullptr);
}

}  // namespace kolo::comm::rendezvous

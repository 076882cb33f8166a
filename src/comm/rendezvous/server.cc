// One thread, one poll(2) over an eventfd, the listeners and all connections; everything else is a
// consequence of what poll returns. A connection passes through the stages hello, proof and ready.
// Before `ready` it may send no more than a handshake, is dropped after a few seconds, and counts
// against a limit of strangers, of which the oldest are dropped first. The MeetingBook holds the
// meetings; this file only moves bytes to and from it.
#include "comm/rendezvous/server.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"

namespace kolo::comm::rendezvous {

using Clock = Deadline::Clock;

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      book_(options_.size) {
  if (!wake_.valid()) throw_errno("cannot create an eventfd");
  for (const auto& address : options_.listen) {
    listeners_.push_back(listen_tcp(address));
    addresses_.push_back(local_address_of(listeners_.back().get()));
  }
  // Signals are for the threads of the program that hosts this one.
  sigset_t all, before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { run(); });
  } catch (...) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

Server::~Server() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_.get(), &one, sizeof one);
  thread_.join();
}

void Server::announce(Departure departure) {
  {
    MutexLock lock(mutex_);
    announced_.push_back(std::move(departure));
  }
  std::uint64_t one = 1;
  [[maybe_unused]] auto written = ::write(wake_.get(), &one, sizeof one);
}

std::set<int> Server::joined() const {
  MutexLock lock(mutex_);
  return joined_;
}
std::size_t Server::open_meetings() const {
  MutexLock lock(mutex_);
  return book_.open_meetings();
}
std::size_t Server::connections() const {
  MutexLock lock(mutex_);
  return connections_.size();
}

void Server::run() {
  MutexLock lock(mutex_);
  std::vector<pollfd> polls;
  std::vector<MeetingBook::Guest> ids;
  while (!stopping_) {
    polls.assign(1, {wake_.get(), POLLIN, 0});
    for (const auto& listener : listeners_)
      polls.push_back({accept_paused_ ? -1 : listener.get(), POLLIN, 0});
    ids.clear();
    for (const auto& [id, connection] : connections_) {
      const short events = connection.outbox.empty() ? POLLIN : POLLIN | POLLOUT;
      polls.push_back({connection.fd.get(), events, 0});
      ids.push_back(id);
    }
    const int timeout = poll_timeout_ms();
    lock.unlock();
    const int ready = ::poll(polls.data(), polls.size(), timeout);
    lock.lock();
    if (ready < 0) continue;  // EINTR

    if (polls[0].revents != 0) {
      std::uint64_t count;
      [[maybe_unused]] auto got = ::read(wake_.get(), &count, sizeof count);
    }
    for (const auto& departure : std::exchange(announced_, {})) depart(departure);
    const std::size_t first = 1 + listeners_.size();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const short events = polls[first + i].revents;
      Connection& connection = connections_.at(ids[i]);
      if ((events & POLLOUT) != 0) flush(connection);
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(ids[i], connection);
    }
    for (std::size_t i = 0; i < listeners_.size(); ++i)
      if (polls[1 + i].revents != 0) accept_from(listeners_[i].get());
    send(book_.expire(Clock::now()));
    drop_slow_strangers();
    drop_broken();
  }
  connections_.clear();
}

int Server::poll_timeout_ms() const {
  auto next = book_.next_expiry();
  for (const auto& [id, connection] : connections_)
    if (connection.stage != Stage::ready && (!next || connection.handshake_until < *next))
      next = connection.handshake_until;
  return next ? Deadline::at(*next).poll_timeout_ms() : -1;
}

void Server::accept_from(int listener) {
  while (true) {
    Fd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      // Out of descriptors or memory: wait until a connection has gone instead of spinning.
      if (errno != EAGAIN && errno != EWOULDBLOCK) accept_paused_ = !connections_.empty();
      return;
    }
    set_no_delay(fd.get());
    Connection& connection = connections_[next_id_++];
    connection.fd = std::move(fd);
    connection.handshake_until = Clock::now() + options_.handshake_timeout;
  }
}

void Server::drop_slow_strangers() {
  const auto now = Clock::now();
  std::size_t strangers = 0;
  // From the youngest to the oldest.
  for (auto entry = connections_.rbegin(); entry != connections_.rend(); ++entry) {
    Connection& connection = entry->second;
    if (connection.stage == Stage::ready || connection.broken) continue;
    if (++strangers > options_.stranger_limit || connection.handshake_until <= now) {
      log::debug("rendezvous: dropped a connection that did not prove itself");
      connection.broken = true;
    }
  }
}

void Server::drop_broken() {
  std::vector<Departure> lost;
  for (auto entry = connections_.begin(); entry != connections_.end();) {
    Connection& connection = entry->second;
    if (!connection.broken) {
      ++entry;
      continue;
    }
    book_.leave(entry->first);
    if (options_.broken_connection_is_departure && connection.stage == Stage::ready &&
        connection.hello.purpose == Purpose::news && !connection.said_goodbye)
      lost.push_back({connection.hello.rank, "connection lost"});
    entry = connections_.erase(entry);
    accept_paused_ = false;
  }
  for (const auto& departure : lost) depart(departure);
}

void Server::read_from(MeetingBook::Guest id, Connection& connection) {
  char chunk[65536];
  while (!connection.broken) {
    ssize_t got = ::recv(connection.fd.get(), chunk, sizeof chunk, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
      connection.broken = true;
      return;
    }
    try {
      connection.parser.feed({chunk, static_cast<std::size_t>(got)});
      while (!connection.broken) {
        auto message = connection.parser.next();
        if (!message) break;
        handle(id, connection, *message);
      }
    } catch (const Error& error) {
      log::debug("rendezvous: dropped a connection: {}", error.message());
      connection.broken = true;
    }
  }
}

void Server::handle(MeetingBook::Guest id, Connection& connection, const Frame& message) {
  const auto type = static_cast<Message>(message.type);
  if (connection.stage == Stage::hello && type == Message::hello) {
    connection.hello = decode_hello(message.payload);
    if (connection.hello.rank < 0 || connection.hello.rank >= options_.size)
      throw_error(ErrorCode::corruption, "there is no rank {}", connection.hello.rank);
    connection.hello_payload = message.payload;
    connection.challenge_payload = encode(make_challenge(options_.secret, message.payload));
    connection.stage = Stage::proof;
    queue(connection, frame(Message::challenge, connection.challenge_payload));
  } else if (connection.stage == Stage::proof && type == Message::proof) {
    if (!check_answer(options_.secret, connection.hello_payload, connection.challenge_payload,
                      message.payload))
      throw_error(ErrorCode::corruption, "wrong proof");
    welcome(connection);
  } else if (connection.stage == Stage::ready && type == Message::goodbye) {
    connection.said_goodbye = true;
    connection.broken = true;
  } else if (connection.stage == Stage::ready && type == Message::meet &&
             connection.hello.purpose == Purpose::meetings) {
    send(book_.come(id, connection.hello.rank, decode_meet(message.payload), Clock::now()));
  } else {
    throw_error(ErrorCode::corruption, "message {} does not belong here", message.type);
  }
}

void Server::welcome(Connection& connection) {
  connection.stage = Stage::ready;
  connection.parser.set_limit(kRequestLimit);
  if (connection.hello.purpose == Purpose::news)
    for (const auto& departure : book_.departures())
      queue(connection, frame(Message::departure, encode(departure)));
  const bool is_new = joined_.insert(connection.hello.rank).second;
  if (is_new && static_cast<int>(joined_.size()) == options_.size && options_.on_all_joined)
    options_.on_all_joined();
}

void Server::queue(Connection& connection, std::string_view bytes) {
  const bool idle = connection.outbox.empty();
  connection.outbox.append(bytes);
  if (idle) flush(connection);
}

void Server::flush(Connection& connection) {
  std::string_view rest = connection.outbox;
  while (!rest.empty()) {
    ssize_t sent = ::send(connection.fd.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno != EINTR) {
      // A connection that broke is noticed, with what it still had to say, when it is read.
      break;
    }
  }
  connection.outbox.erase(0, connection.outbox.size() - rest.size());
}

void Server::send(const MeetingBook::Replies& replies) {
  for (const auto& [guest, bytes] : replies)
    if (auto found = connections_.find(guest); found != connections_.end())
      queue(found->second, *bytes);
}

void Server::depart(const Departure& departure) {
  MeetingBook::Replies replies;
  if (!book_.depart(departure, replies)) return;
  // News first: whoever is told that a meeting failed finds the reason already there.
  const std::string message = frame(Message::departure, encode(departure));
  for (auto& [id, connection] : connections_)
    if (connection.stage == Stage::ready && connection.hello.purpose == Purpose::news)
      queue(connection, message);
  send(replies);
}

}  // namespace kolo::comm::rendezvous

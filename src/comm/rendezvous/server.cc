// One thread, one poll(2) over an eventfd, the doorkeeper and all connections; everything else is a
// consequence of what poll returns. The doorkeeper lets ranks in and keeps strangers out; the
// MeetingBook holds the meetings; this file only moves bytes to and from it.
#include "comm/rendezvous/server.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"
#include "base/signals_blocked.h"

namespace kolo::comm::rendezvous {

using Clock = Deadline::Clock;

Server::Server(ServerOptions options)
    : options_(std::move(options)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      book_(options_.size) {
  if (!wake_.valid()) throw_errno("cannot create an eventfd");
  std::vector<Fd> listeners;
  for (const auto& address : options_.listen) {
    listeners.push_back(listen_tcp(address));
    addresses_.push_back(local_address_of(listeners.back().get()));
  }
  const auto expects = [size = options_.size](const Hello& hello) {
    return hello.rank >= 0 && hello.rank < size &&
           (hello.purpose == Purpose::meetings || hello.purpose == Purpose::news);
  };
  {
    MutexLock lock(mutex_);
    door_.emplace(std::move(listeners),
                  DoorkeeperOptions{options_.secret, expects, options_.stranger_limit,
                                    options_.handshake_timeout});
  }
  // Signals are for the threads of the program that hosts this one.
  const SignalsBlocked signals_blocked;
  thread_ = std::thread([this] { run(); });
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
  return connections_.size() + door_->strangers();
}

void Server::run() {
  MutexLock lock(mutex_);
  std::vector<pollfd> polls;
  std::vector<MeetingBook::Guest> ids;
  while (!stopping_) {
    polls.assign({{wake_.get(), POLLIN, 0}, {door_->poll_fd(), POLLIN, 0}});
    const std::size_t first = polls.size();
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
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const short events = polls[first + i].revents;
      Connection& connection = connections_.at(ids[i]);
      if ((events & POLLOUT) != 0) flush(connection);
      if ((events & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(ids[i], connection);
    }
    if (polls[1].revents != 0)
      for (auto& guest : door_->admit()) welcome(std::move(guest));
    send(book_.expire(Clock::now()));
    drop_broken();
  }
  connections_.clear();
}

int Server::poll_timeout_ms() const {
  const auto next = book_.next_expiry();
  return next ? Deadline::at(*next).poll_timeout_ms() : -1;
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
    if (options_.broken_connection_is_departure && connection.hello.purpose == Purpose::news &&
        !connection.said_goodbye)
      lost.push_back({connection.hello.rank, "connection lost", DepartureKind::failed});
    entry = connections_.erase(entry);
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
  if (type == Message::goodbye) {
    connection.said_goodbye = true;
    connection.broken = true;
  } else if (type == Message::meet && connection.hello.purpose == Purpose::meetings) {
    send(book_.come(id, connection.hello.rank, decode_meet(message.payload), Clock::now()));
  } else if (type == Message::activity && connection.hello.purpose == Purpose::news) {
    const ActivityReport report = decode_activity(message.payload);
    if (options_.on_activity) options_.on_activity(connection.hello.rank, report);
  } else {
    throw_error(ErrorCode::corruption, "message {} does not belong here", message.type);
  }
}

void Server::welcome(Doorkeeper::Guest guest) {
  Connection& connection = connections_[next_id_++];
  connection.fd = std::move(guest.socket);
  connection.hello = std::move(guest.hello);
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
    if (connection.hello.purpose == Purpose::news) queue(connection, message);
  send(replies);
}

}  // namespace kolo::comm::rendezvous

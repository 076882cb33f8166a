#include "comm/elastic/lobby.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "base/errors.h"
#include "base/log.h"

namespace kolo::comm::elastic {
namespace {

/// The doorkeeper's number in the epoll set; workers have numbers from 0 on.
constexpr std::uint64_t kDoor = ~std::uint64_t{0};

}  // namespace

Lobby::Lobby(const Secret& secret, const std::vector<SocketAddress>& listen,
             std::function<bool(int)> expects)
    : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  std::vector<Fd> listeners;
  for (const auto& address : listen) {
    listeners.push_back(listen_tcp(address));
    addresses_.push_back(local_address_of(listeners.back().get()));
  }
  door_.emplace(
      std::move(listeners),
      rendezvous::DoorkeeperOptions{
          .secret = secret,
          .expects = [this, expects = std::move(expects)](const rendezvous::Hello& hello) {
            return hello.purpose == rendezvous::Purpose::membership && expects(hello.rank) &&
                   !is_here(hello.rank);
          }});
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = kDoor;
  if (!epoll_.valid() || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, door_->poll_fd(), &event) != 0)
    throw_errno("cannot wait for the workers");
}

std::vector<Lobby::Event> Lobby::receive() {
  std::vector<Event> events;
  // All that can be read, so that no worker that has spoken seems to be silent; each once.
  std::vector<epoll_event> ready(connections_.size() + 1);
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready[static_cast<std::size_t>(i)];
    if (event.data.u64 == kDoor) {
      for (auto& guest : door_->admit()) welcome(std::move(guest));
      continue;
    }
    const int worker = static_cast<int>(event.data.u64);
    const auto found = connections_.find(worker);
    if (found == connections_.end()) continue;
    if ((event.events & EPOLLOUT) != 0) flush(worker, found->second);
    if ((event.events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 &&
        !read_from(worker, found->second, events))
      connections_.erase(found);
  }
  return events;
}

/// Its connection is there, and has not been closed by the other side.
bool Lobby::is_here(int worker) const {
  const auto found = connections_.find(worker);
  if (found == connections_.end()) return false;
  char next;
  const ssize_t got = ::recv(found->second.socket.get(), &next, 1, MSG_PEEK | MSG_DONTWAIT);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void Lobby::welcome(rendezvous::Doorkeeper::Guest guest) {
  if (is_here(guest.hello.rank)) return;  // two have come at once
  Connection& connection = connections_[guest.hello.rank] = {};
  connection.socket = std::move(guest.socket);
  watch(guest.hello.rank, connection, EPOLL_CTL_ADD);
}

bool Lobby::read_from(int worker, Connection& connection, std::vector<Event>& events) {
  char chunk[4096];
  const ssize_t got = ::recv(connection.socket.get(), chunk, sizeof chunk, 0);
  if (got < 0 && (errno == EINTR || errno == EAGAIN)) return true;
  if (got <= 0) return false;
  try {
    connection.parser.feed({chunk, static_cast<std::size_t>(got)});
    while (auto frame = connection.parser.next())
      events.push_back({worker, decode_from_worker(*frame)});
  } catch (const Error& error) {
    log::warning("worker {}: its connection was dropped: {}", worker, error.message());
    return false;
  }
  return true;
}

void Lobby::send(int worker, const FromLauncher& message) {
  const auto found = connections_.find(worker);
  if (found == connections_.end()) return;
  found->second.outgoing += encode(message);
  flush(worker, found->second);
}

void Lobby::flush(int worker, Connection& connection) {
  std::string_view rest = connection.outgoing;
  while (!rest.empty()) {
    const ssize_t sent =
        ::send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0)
      rest.remove_prefix(static_cast<std::size_t>(sent));
    else if (errno != EINTR)
      break;  // full, or broken, which is noticed when it is read
  }
  connection.outgoing.erase(0, connection.outgoing.size() - rest.size());
  watch(worker, connection, EPOLL_CTL_MOD);
}

void Lobby::watch(int worker, const Connection& connection, int operation) {
  epoll_event event{};
  event.events = connection.outgoing.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.u64 = static_cast<std::uint64_t>(worker);
  ::epoll_ctl(epoll_.get(), operation, connection.socket.get(), &event);
}

void Lobby::forget(int worker) { connections_.erase(worker); }

}  // namespace kolo::comm::elastic

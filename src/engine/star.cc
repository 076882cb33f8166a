// The leader listens and broadcasts its addresses and a fresh secret over the communicator: on
// several hosts on ports of its own, inside one host on a local socket. Members connect and prove
// that they know the secret, as ranks do at the rendezvous. After that all sockets are
// non-blocking: send() queues what the socket does not take at once, and wait() is one poll(2) over
// all sockets and an eventfd by which other threads wake it.
#include "engine/star.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/socket.h"
#include "comm/group.h"
#include "comm/internals.h"
#include "comm/network_interface.h"
#include "comm/rendezvous/caller.h"
#include "comm/rendezvous/doorkeeper.h"

namespace kolo::runtime {
namespace {

namespace rendezvous = comm::rendezvous;

/// For one attempt to connect: packets to an address that leads nowhere may vanish.
constexpr auto kOneAddress = std::chrono::seconds(3);
constexpr auto kPause = std::chrono::milliseconds(20);

/// Root's bytes to all.
std::string share(Communicator& members, std::string bytes) {
  std::uint64_t length = bytes.size();
  members.broadcast(&length, sizeof length, DataType::uint8, 0);
  bytes.resize(length);
  members.broadcast(bytes.data(), length, DataType::uint8, 0);
  return bytes;
}

/// Nobody who is gone connects, or is there to be connected to.
void throw_if_lost(Communicator& members) {
  if (const auto lost = comm::Internals::group_of(members).lost_member())
    throw Error(ErrorCode::peer_lost,
                fmt::format("engine: rank {} of the process set was lost when it began", *lost),
                *lost);
}

}  // namespace

Star::Star(Communicator& members, Deadline deadline)
    : wake_fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!wake_fd_.valid()) throw_errno("cannot create an eventfd");
  if (members.size() == 1) return;
  if (members.rank() == 0)
    lead(members, deadline);
  else
    follow(members, deadline);
}

// The secret of this star travels over the communicator, as gradients do: it keeps out strangers
// who find the port, not those who can read the job's traffic.
void Star::lead(Communicator& members, Deadline deadline) {
  const Secret secret = Secret::random();
  std::vector<Fd> listeners;
  std::vector<std::string> addresses;
  const bool is_one_host = members.topology().host_count() == 1;
  for (const auto& place :
       is_one_host ? std::vector{SocketAddress::parse("@")} : comm::addresses_to_listen(false)) {
    listeners.push_back(listen_tcp(place));
    addresses.push_back(local_address_of(listeners.back().get()).str());
  }
  share(members, ByteWriter().raw(secret.bytes()).strings(addresses).bytes());

  std::vector<bool> is_missing(static_cast<std::size_t>(members.size()), true);
  is_missing[0] = false;
  const auto expects = [&](const rendezvous::Hello& hello) {
    return hello.purpose == rendezvous::Purpose::engine && hello.rank > 0 &&
           hello.rank < members.size() && is_missing[static_cast<std::size_t>(hello.rank)];
  };
  rendezvous::Doorkeeper door(std::move(listeners), {.secret = secret, .expects = expects});
  for (int missing = members.size() - 1; missing > 0;) {
    pollfd poll{door.poll_fd(), POLLIN, 0};
    ::poll(&poll, 1,
           Deadline::after(std::min<std::chrono::nanoseconds>(kPause, deadline.left()))
               .poll_timeout_ms());
    throw_if_lost(members);
    if (deadline.passed())
      throw_error(ErrorCode::timeout,
                  "engine: {} of {} members did not connect to their leader in time; the first of "
                  "them is rank {} of the process set",
                  missing, members.size() - 1,
                  std::find(is_missing.begin(), is_missing.end(), true) - is_missing.begin());
    for (auto& guest : door.admit()) {
      if (!expects(guest.hello)) continue;  // it came twice at once
      is_missing[static_cast<std::size_t>(guest.hello.rank)] = false;
      links_.push_back({guest.hello.rank, std::move(guest.socket), FrameParser(kFrameLimit), ""});
      --missing;
    }
  }
}

void Star::follow(Communicator& members, Deadline deadline) {
  const std::string introduction = share(members, "");
  ByteReader reader(introduction);
  const Secret secret = Secret::from_bytes(reader.raw(Secret::kBytes));
  const std::vector<std::string> addresses = reader.strings();
  std::string problem;
  while (!deadline.passed()) {
    for (const auto& address : addresses) {
      try {
        const auto limit =
            Deadline::after(std::min<std::chrono::nanoseconds>(kOneAddress, deadline.left()));
        rendezvous::Caller caller(SocketAddress::parse(address), rendezvous::Purpose::engine,
                                  members.rank(), limit, "the leader at " + address);
        links_.push_back({0, caller.prove(secret, limit), FrameParser(kFrameLimit), ""});
        return;
      } catch (const Error& error) {
        problem = error.message();
      }
    }
    throw_if_lost(members);
    ::poll(nullptr, 0, static_cast<int>(kPause.count()));
  }
  throw_error(ErrorCode::unavailable, "engine: cannot reach the leader of the process set: {}",
              problem);
}

void Star::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(wake_fd_.get(), &one, sizeof one);
}

void Star::send(int to, std::string_view frame) {
  for (Link& link : links_) {
    if (link.member != to || !link.socket.valid()) continue;
    link.outgoing.append(frame);
    push(link);
  }
}

void Star::push(Link& link) {
  std::size_t taken = 0;
  while (taken < link.outgoing.size()) {
    const ssize_t sent = ::send(link.socket.get(), link.outgoing.data() + taken,
                                link.outgoing.size() - taken, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      taken += static_cast<std::size_t>(sent);
    } else if (errno == EAGAIN) {
      break;
    } else if (errno != EINTR) {
      taken = link.outgoing.size();  // gone; reading will say so
    }
  }
  link.outgoing.erase(0, taken);
}

bool Star::pull(Link& link, News& news) {
  char bytes[16 * 1024];
  bool is_open = true;
  while (true) {
    const ssize_t got = ::recv(link.socket.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
      link.parser.feed({bytes, static_cast<std::size_t>(got)});
      if (static_cast<std::size_t>(got) < sizeof bytes) break;
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      is_open = got < 0 && errno == EAGAIN;
      break;
    }
  }
  while (auto frame = link.parser.next()) news.messages.push_back({link.member, std::move(*frame)});
  return is_open;
}

Star::News Star::wait(std::optional<Deadline::Clock::time_point> until) {
  std::vector<pollfd> polls = {{wake_fd_.get(), POLLIN, 0}};
  for (const Link& link : links_) {
    const auto events = static_cast<short>(POLLIN | (link.outgoing.empty() ? 0 : POLLOUT));
    polls.push_back({link.socket.get(), events, 0});  // poll(2) ignores negative descriptors
  }
  const int timeout = until ? Deadline::at(*until).poll_timeout_ms() : -1;
  News news;
  if (::poll(polls.data(), polls.size(), timeout) <= 0) return news;
  if (polls[0].revents != 0) {
    std::uint64_t count;
    [[maybe_unused]] const auto got = ::read(wake_fd_.get(), &count, sizeof count);
  }
  for (std::size_t i = 0; i < links_.size(); ++i) {
    if (polls[i + 1].revents == 0) continue;
    if ((polls[i + 1].revents & POLLOUT) != 0) push(links_[i]);
    if ((polls[i + 1].revents & ~POLLOUT) == 0) continue;
    std::string reason = "closed its connection: it has ended or left";
    try {
      if (pull(links_[i], news)) continue;
    } catch (const Error& error) {
      reason = fmt::format("sent what is no message of an engine: {}", error.message());
    }
    news.closed.push_back({links_[i].member, std::move(reason)});
    links_[i].socket = Fd();
  }
  return news;
}

void Star::close() noexcept {
  for (Link& link : links_) link.socket = Fd();
}

void Star::flush(Deadline deadline) {
  for (Link& link : links_) {
    while (link.socket.valid() && !link.outgoing.empty() && !deadline.passed()) {
      pollfd poll{link.socket.get(), POLLOUT, 0};
      ::poll(&poll, 1, deadline.poll_timeout_ms());
      push(link);
    }
  }
}

}  // namespace kolo::runtime

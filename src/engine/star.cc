// The leader listens on a port of its own and broadcasts its addresses and a fresh secret over the
// communicator. Members connect and prove that they know the secret, with the handshake of the
// rendezvous. After that all sockets are non-blocking: send() queues what the socket does not take
// at once, and wait() is one poll(2) over all sockets and an eventfd by which other threads wake
// it.
#include "engine/star.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>

#include "base/errors.h"
#include "base/socket.h"
#include "comm/rendezvous/protocol.h"

namespace kolo::runtime {
namespace {

namespace handshake = comm::rendezvous;

/// A stranger, or a member whose packets are lost, may hold the leader up for this long.
constexpr auto kHandshakeTime = std::chrono::seconds(5);
constexpr auto kOneAddress = std::chrono::seconds(3);

Frame receive(int socket, Deadline deadline, std::string_view peer) {
  std::string prefix(4, '\0');
  recv_exactly(socket, prefix.data(), prefix.size(), deadline, peer);
  const std::size_t length = ByteReader(prefix).u32();
  if (length == 0 || length > handshake::kHandshakeLimit)
    throw_error(
        ErrorCode::corruption,
        "{} sent a greeting of {} bytes, which kolo never does; another program probably connected",
        peer, length);
  Frame frame;
  recv_exactly(socket, &frame.type, 1, deadline, peer);
  frame.payload.resize(length - 1);
  recv_exactly(socket, frame.payload.data(), frame.payload.size(), deadline, peer);
  return frame;
}

/// Root's bytes to all.
std::string share(Communicator& members, std::string bytes) {
  std::uint64_t length = bytes.size();
  members.broadcast(&length, sizeof length, DataType::uint8, 0);
  bytes.resize(length);
  members.broadcast(bytes.data(), length, DataType::uint8, 0);
  return bytes;
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
  const bool is_local = members.topology().host_count() == 1;
  const auto interfaces = network_interfaces();
  const bool has_v4 = std::any_of(interfaces.begin(), interfaces.end(), [](const auto& found) {
    return found.address.family() == AF_INET;
  });
  const Fd listener = listen_tcp(is_local ? SocketAddress::loopback()
                                          : SocketAddress::from_numeric(has_v4 ? "0.0.0.0" : "::"));
  const auto port = local_address_of(listener.get()).port();
  const Secret secret = Secret::random();
  std::vector<std::string> addresses;
  if (!is_local)
    for (const auto& interface : interfaces)
      if (!interface.address.is_loopback() && (interface.address.family() == AF_INET) == has_v4)
        addresses.push_back(interface.address.with_port(port).str());
  addresses.push_back(SocketAddress::loopback().with_port(port).str());
  ByteWriter introduction;
  introduction.raw(secret.bytes()).u32(static_cast<std::uint32_t>(addresses.size()));
  for (const auto& address : addresses) introduction.string(address);
  share(members, introduction.bytes());

  std::vector<bool> here(static_cast<std::size_t>(members.size()));
  for (int missing = members.size() - 1; missing > 0;) {
    pollfd poll{listener.get(), POLLIN, 0};
    if (::poll(&poll, 1, deadline.poll_timeout_ms()) == 0 && deadline.passed())
      throw_error(ErrorCode::timeout, "engine: {} of {} members did not connect to their leader",
                  missing, members.size() - 1);
    Fd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) continue;
    set_no_delay(socket.get());
    try {
      const auto limit = Deadline::after(kHandshakeTime);
      const Frame hello = receive(socket.get(), limit, "a member");
      const int member = handshake::decode_hello(hello.payload).rank;
      const std::string challenge =
          handshake::encode(handshake::make_challenge(secret, hello.payload));
      send_all(socket.get(), handshake::frame(handshake::Message::challenge, challenge), limit,
               "a member");
      const Frame proof = receive(socket.get(), limit, "a member");
      if (!handshake::check_answer(secret, hello.payload, challenge, proof.payload)) continue;
      if (member <= 0 || member >= members.size() || here[static_cast<std::size_t>(member)])
        continue;
      here[static_cast<std::size_t>(member)] = true;
      links_.push_back({member, std::move(socket), FrameParser(kFrameLimit), ""});
      --missing;
    } catch (const Error&) {
      // A stranger, or a member that will try again.
    }
  }
}

void Star::follow(Communicator& members, Deadline deadline) {
  const std::string introduction = share(members, "");
  ByteReader reader(introduction);
  const Secret secret = Secret::from_bytes(reader.raw(Secret::kBytes));
  std::vector<std::string> addresses(reader.count(4));
  for (auto& address : addresses) address = reader.string();
  std::string problem;
  while (!deadline.passed()) {
    for (const auto& address : addresses) {
      try {
        const auto limit = Deadline::after(kOneAddress);
        Fd socket = connect_tcp(SocketAddress::parse(address), limit);
        const std::string hello = handshake::encode(
            handshake::Hello{handshake::Purpose::meetings, members.rank(), random_nonce()});
        send_all(socket.get(), handshake::frame(handshake::Message::hello, hello), limit, address);
        // The leader greets one member after the other.
        const Frame challenge = receive(socket.get(), deadline, address);
        send_all(socket.get(),
                 handshake::frame(handshake::Message::proof,
                                  handshake::answer_challenge(secret, hello, challenge.payload)),
                 limit, address);
        links_.push_back({0, std::move(socket), FrameParser(kFrameLimit), ""});
        return;
      } catch (const Error& error) {
        problem = error.message();
      }
    }
    ::poll(nullptr, 0, 20);
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
    if (!pull(links_[i], news)) {
      news.closed.push_back(links_[i].member);
      links_[i].socket = Fd();
    }
  }
  return news;
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

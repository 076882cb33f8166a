// Stream sockets are non-blocking. A transfer first tries the call and polls only after EAGAIN, so
// that data which is ready costs one system call. A wait ends at the deadline or when the process
// is interrupted. Keep-alive divides its time into one idle interval and three probes;
// TCP_USER_TIMEOUT covers data that is not acknowledged, for which no probes are sent. Hosts are
// compared by their numeric text, in which an IPv4 address mapped into IPv6 is easily recognised.
#include "base/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <memory>

#include "base/errors.h"
#include "base/interrupt.h"

namespace kolo {
namespace {

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
  void operator()(ifaddrs* list) const { ::freeifaddrs(list); }
};

std::unique_ptr<addrinfo, FreeAddresses> look_up(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return nullptr;
  return std::unique_ptr<addrinfo, FreeAddresses>(list);
}

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);
}

/// Waits until `socket` is ready for `events`; throws timeout.
void wait_ready(int socket, short events, Deadline deadline, std::string_view peer) {
  while (true) {
    pollfd poll{socket, events, 0};
    int ready = ::poll(&poll, 1, deadline.poll_timeout_ms());
    if (ready > 0) return;
    if (ready < 0 && errno != EINTR) throw_errno("cannot wait for {}", peer);
    throw_if_interrupted();
    if (deadline.passed()) throw_error(ErrorCode::timeout, "{} did not answer in time", peer);
  }
}

}  // namespace

SocketAddress SocketAddress::from_raw(const sockaddr* raw, socklen_t length) {
  SocketAddress address;
  KOLO_CHECK(length <= sizeof address.storage_);
  std::memcpy(&address.storage_, raw, length);
  address.length_ = length;
  return address;
}

SocketAddress SocketAddress::from_numeric(const std::string& host, std::uint16_t port) {
  auto list = look_up(host, AI_NUMERICHOST);
  if (!list)
    throw_error(ErrorCode::invalid_argument, "'{}' is not a numeric network address", host);
  return from_raw(list->ai_addr, list->ai_addrlen).with_port(port);
}

SocketAddress SocketAddress::parse(std::string_view text) {
  // The name begins with a zero byte, which str() writes as '@'. Without any, the kernel gives one.
  if (text.starts_with('@')) {
    sockaddr_un local{};
    if (text.size() > sizeof local.sun_path)
      throw_error(ErrorCode::invalid_argument, "'{}' is too long for the name of a socket", text);
    local.sun_family = AF_UNIX;
    std::copy(text.begin() + 1, text.end(), local.sun_path + 1);
    return from_raw(reinterpret_cast<const sockaddr*>(&local),
                    static_cast<socklen_t>(sizeof(sa_family_t) + (text == "@" ? 0 : text.size())));
  }
  const auto colon = text.rfind(':');
  std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']')
    host = host.substr(1, host.size() - 2);
  std::uint16_t port = 0;
  if (colon != std::string_view::npos) {
    const char* first = text.data() + colon + 1;
    const char* last = text.data() + text.size();
    auto [end, error] = std::from_chars(first, last, port);
    if (error == std::errc() && end == last && first != last)
      return from_numeric(std::string(host), port);
  }
  throw_error(ErrorCode::invalid_argument, "'{}' is not of the form ADDRESS:PORT", text);
}

std::string SocketAddress::host() const {
  if (family() == AF_UNIX) return "this host";
  char name[NI_MAXHOST];
  if (::getnameinfo(raw(), length_, name, sizeof name, nullptr, 0, NI_NUMERICHOST) != 0) return "?";
  return name;
}

std::uint16_t SocketAddress::port() const noexcept {
  if (family() == AF_INET) return ntohs(as_v4(storage_).sin_port);
  if (family() == AF_INET6) return ntohs(as_v6(storage_).sin6_port);
  return 0;
}

std::string SocketAddress::str() const {
  if (family() == AF_UNIX) {
    const auto& local = reinterpret_cast<const sockaddr_un&>(storage_);
    std::string name(local.sun_path, length_ - sizeof(sa_family_t));
    name.resize(std::max<std::size_t>(1, name.size()));
    name.front() = '@';
    return name;
  }
  return family() == AF_INET6 ? fmt::format("[{}]:{}", host(), port())
                              : fmt::format("{}:{}", host(), port());
}

bool SocketAddress::is_loopback() const noexcept {
  if (family() == AF_INET) return (ntohl(as_v4(storage_).sin_addr.s_addr) >> 24) == 127;
  return family() == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&as_v6(storage_).sin6_addr);
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress copy = *this;
  if (family() == AF_INET)
    reinterpret_cast<sockaddr_in&>(copy.storage_).sin_port = htons(port);
  else if (family() == AF_INET6)
    reinterpret_cast<sockaddr_in6&>(copy.storage_).sin6_port = htons(port);
  return copy;
}

bool SocketAddress::same_host(const SocketAddress& other) const {
  auto plain = [](std::string text) {
    constexpr std::string_view kMapped = "::ffff:";
    if (text.starts_with(kMapped) && text.find('.') != std::string::npos)
      text.erase(0, kMapped.size());
    return text;
  };
  return plain(host()) == plain(other.host());
}

Fd listen_tcp(const SocketAddress& address) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) throw_errno("cannot create a socket");
  int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd.get(), address.raw(), address.length()) != 0)
    throw_errno("cannot bind to {}", address.str());
  if (::listen(fd.get(), SOMAXCONN) != 0) throw_errno("cannot listen on {}", address.str());
  return fd;
}

SocketAddress local_address_of(int socket) {
  sockaddr_storage storage{};
  socklen_t length = sizeof storage;
  auto* raw = reinterpret_cast<sockaddr*>(&storage);
  if (::getsockname(socket, raw, &length) != 0) throw_errno("cannot ask a socket for its address");
  return SocketAddress::from_raw(raw, length);
}

void set_no_delay(int socket) {
  int one = 1;
  ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

void set_keep_alive(int socket, std::chrono::seconds time) {
  constexpr int kProbes = 3;
  const int on = 1, probes = kProbes, total_ms = static_cast<int>(time.count()) * 1000;
  const int step = std::max(1, static_cast<int>(time.count()) / (kProbes + 1));
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &step, sizeof step);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &step, sizeof step);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  ::setsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &total_ms, sizeof total_ms);
}

void set_non_blocking(int fd) {
  int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    throw_errno("cannot make descriptor {} non-blocking", fd);
}

Fd begin_connect_tcp(const SocketAddress& address) {
  Fd fd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) throw_errno("cannot create a socket");
  set_no_delay(fd.get());
  if (::connect(fd.get(), address.raw(), address.length()) != 0 && errno != EINPROGRESS)
    throw_error(ErrorCode::unavailable, "cannot connect to {}: {}", address.str(),
                std::strerror(errno));
  return fd;
}

Fd connect_tcp(const SocketAddress& address, Deadline deadline) {
  Fd fd = begin_connect_tcp(address);
  wait_ready(fd.get(), POLLOUT, deadline, address.str());
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  if (error != 0)
    throw_error(ErrorCode::unavailable, "cannot connect to {}: {}", address.str(),
                std::strerror(error));
  return fd;
}

void send_all(int socket, std::string_view data, Deadline deadline, std::string_view peer) {
  while (!data.empty()) {
    ssize_t sent = ::send(socket, data.data(), data.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      data.remove_prefix(static_cast<std::size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_ready(socket, POLLOUT, deadline, peer);
    } else if (errno == EPIPE || errno == ECONNRESET) {
      throw_error(ErrorCode::unavailable, "{} closed the connection", peer);
    } else if (errno != EINTR) {
      throw_errno("cannot send to {}", peer);
    }
  }
}

void recv_exactly(int socket, void* data, std::size_t bytes, Deadline deadline,
                  std::string_view peer) {
  auto* to = static_cast<char*>(data);
  while (bytes > 0) {
    ssize_t got = ::recv(socket, to, bytes, 0);
    if (got > 0) {
      to += got;
      bytes -= static_cast<std::size_t>(got);
    } else if (got == 0 || errno == ECONNRESET) {
      throw_error(ErrorCode::unavailable, "{} closed the connection", peer);
    } else if (errno == EAGAIN) {
      wait_ready(socket, POLLIN, deadline, peer);
    } else if (errno != EINTR) {
      throw_errno("cannot receive from {}", peer);
    }
  }
}

std::vector<Interface> network_interfaces() {
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) throw_errno("cannot list the network interfaces");
  std::unique_ptr<ifaddrs, FreeAddresses> list(first);
  std::vector<Interface> found;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family == AF_INET) {
      found.push_back(
          {entry->ifa_name, SocketAddress::from_raw(entry->ifa_addr, sizeof(sockaddr_in))});
    } else if (family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr);
      if (IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr)) continue;
      found.push_back(
          {entry->ifa_name, SocketAddress::from_raw(entry->ifa_addr, sizeof(sockaddr_in6))});
    }
  }
  // IPv4 first: what most networks route.
  std::stable_sort(found.begin(), found.end(), [](const Interface& a, const Interface& b) {
    return a.address.family() == AF_INET && b.address.family() != AF_INET;
  });
  return found;
}

SocketAddress interface_address(const std::string& name_or_address) {
  std::string known;
  for (const auto& [name, address] : network_interfaces()) {
    if (name == name_or_address || address.host() == name_or_address) return address;
    known += fmt::format("{}{} ({})", known.empty() ? "" : ", ", name, address.host());
  }
  throw_error(ErrorCode::not_found, "there is no network interface '{}' that is up; known: {}",
              name_or_address, known);
}

std::vector<SocketAddress> resolve_host(const std::string& host) {
  std::vector<SocketAddress> found;
  auto list = look_up(host, AI_ADDRCONFIG);
  for (const addrinfo* entry = list.get(); entry != nullptr; entry = entry->ai_next)
    found.push_back(SocketAddress::from_raw(entry->ai_addr, entry->ai_addrlen));
  return found;
}

std::optional<SocketAddress> address_towards(const SocketAddress& target) {
  // Connecting a datagram socket sends nothing, but makes the kernel choose route and source.
  Fd fd(::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const SocketAddress there = target.with_port(9);
  if (!fd.valid() || ::connect(fd.get(), there.raw(), there.length()) != 0) return std::nullopt;
  return local_address_of(fd.get()).with_port(0);
}

bool is_own_address(const SocketAddress& address) {
  if (address.is_loopback()) return true;
  for (const auto& interface : network_interfaces())
    if (interface.address.same_host(address)) return true;
  return false;
}

}  // namespace kolo

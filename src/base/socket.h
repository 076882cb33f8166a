// Stream sockets with deadlines, and the addresses of this machine.
#pragma once

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/fd.h"

namespace kolo {

/// A numeric IPv4 or IPv6 address with a port, or "@NAME": a local socket that has no file.
class SocketAddress {
 public:
  SocketAddress() = default;

  /// "127.0.0.1", "fe80::1%eth0". Throws invalid_argument; names are not looked up.
  static SocketAddress from_numeric(const std::string& host, std::uint16_t port = 0);
  /// "127.0.0.1:80", "[::1]:80", "@NAME" ("@": any free one). Throws invalid_argument.
  static SocketAddress parse(std::string_view text);
  static SocketAddress from_raw(const sockaddr* raw, socklen_t length);
  static SocketAddress loopback() { return from_numeric("127.0.0.1"); }

  [[nodiscard]] std::string host() const;  ///< without the port
  [[nodiscard]] std::uint16_t port() const noexcept;
  [[nodiscard]] std::string str() const;
  [[nodiscard]] bool is_loopback() const noexcept;
  [[nodiscard]] int family() const noexcept { return storage_.ss_family; }

  [[nodiscard]] SocketAddress with_port(std::uint16_t port) const;
  /// The same host, whatever the port. An IPv4 address inside IPv6 is that IPv4 address.
  [[nodiscard]] bool same_host(const SocketAddress& other) const;

  [[nodiscard]] const sockaddr* raw() const noexcept {
    return reinterpret_cast<const sockaddr*>(&storage_);
  }
  [[nodiscard]] socklen_t length() const noexcept { return length_; }

 private:
  sockaddr_storage storage_{};
  socklen_t length_ = 0;
};

/// A non-blocking listening socket; port 0 = any free one. Throws io.
Fd listen_tcp(const SocketAddress& address);
/// Where a socket is bound.
SocketAddress local_address_of(int socket);

/// A non-blocking, connected socket with small messages sent at once (TCP_NODELAY).
/// Throws unavailable (refused, unreachable) or timeout.
Fd connect_tcp(const SocketAddress& address, Deadline deadline);

/// As above, without waiting: the socket becomes writable when it is connected, and whoever reads
/// from it learns why it is not. Throws unavailable for what is known at once.
Fd begin_connect_tcp(const SocketAddress& address);

void set_no_delay(int socket);
/// A connection whose other side has not answered for `time` is broken, also while nothing is sent.
void set_keep_alive(int socket, std::chrono::seconds time);
void set_non_blocking(int fd);

/// On a non-blocking socket: all bytes or an Error (io, timeout; unavailable if the other side has
/// closed). `peer` names the other side in messages.
void send_all(int socket, std::string_view data, Deadline deadline, std::string_view peer);
void recv_exactly(int socket, void* data, std::size_t bytes, Deadline deadline,
                  std::string_view peer);

// --- this machine --------------------------------------------------------------------------------

struct Interface {
  std::string name;
  SocketAddress address;
};

/// Addresses of the interfaces that are up; link-local IPv6 is left out.
std::vector<Interface> network_interfaces();
/// The address of an interface given by name, or of the one that has this numeric address.
/// Throws not_found, listing the known ones.
SocketAddress interface_address(const std::string& name_or_address);
/// Addresses of a host name, best first; empty if unknown.
std::vector<SocketAddress> resolve_host(const std::string& host);
/// The local address from which packets to `target` leave, if there is a route.
std::optional<SocketAddress> address_towards(const SocketAddress& target);
/// Whether an address is one of this machine's own.
bool is_own_address(const SocketAddress& address);

}  // namespace kolo

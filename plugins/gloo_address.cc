#include "gloo_address.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "base/errors.h"
#include "base/fd.h"

namespace kolo::comm {
namespace {

struct Interface {
  std::string name;
  std::string address;
  bool is_loopback;
};

std::string numeric(const sockaddr* address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address->sa_family == AF_INET) {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text,
                sizeof text);
  } else if (address->sa_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text,
                sizeof text);
  }
  return text;
}

bool is_link_local(const sockaddr* address) {
  return address->sa_family == AF_INET6 &&
         IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

/// Interfaces that are up, IPv4 before IPv6. Link-local addresses need a scope that means nothing
/// to others, so they are left out.
std::vector<Interface> interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) throw_errno("cannot list the network interfaces");
  std::vector<Interface> found;
  for (int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
      if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != family) continue;
      if ((entry->ifa_flags & IFF_UP) == 0 || is_link_local(entry->ifa_addr)) continue;
      found.push_back(
          {entry->ifa_name, numeric(entry->ifa_addr), (entry->ifa_flags & IFF_LOOPBACK) != 0});
    }
  }
  ::freeifaddrs(list);
  return found;
}

std::string address_of_interface(const std::string& names) {
  std::vector<Interface> known = interfaces();
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    for (const Interface& interface : known)
      if (interface.name == name || interface.address == name) return interface.address;
  }
  std::string offered;
  for (const Interface& interface : known)
    offered +=
        fmt::format("{}{} ({})", offered.empty() ? "" : ", ", interface.name, interface.address);
  throw_error(ErrorCode::invalid_argument,
              "network interface '{}' is not there, is down or has no address; this host has {}",
              names, offered);
}

/// Equal for processes that reach each other through loopback: one kernel, one network namespace.
std::string loopback_domain() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  std::error_code ignored;
  return boot_id + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

/// The local address from which packets to `remote` would leave. Sends nothing.
std::optional<std::string> source_address_towards(const std::string& remote) {
  sockaddr_storage to{};
  socklen_t length;
  if (::inet_pton(AF_INET, remote.c_str(), &reinterpret_cast<sockaddr_in*>(&to)->sin_addr) == 1) {
    to.ss_family = AF_INET;
    reinterpret_cast<sockaddr_in*>(&to)->sin_port = htons(9);
    length = sizeof(sockaddr_in);
  } else if (::inet_pton(AF_INET6, remote.c_str(),
                         &reinterpret_cast<sockaddr_in6*>(&to)->sin6_addr) == 1) {
    to.ss_family = AF_INET6;
    reinterpret_cast<sockaddr_in6*>(&to)->sin6_port = htons(9);
    length = sizeof(sockaddr_in6);
  } else {
    return std::nullopt;
  }
  Fd probe(::socket(to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!probe.valid() || ::connect(probe.get(), reinterpret_cast<sockaddr*>(&to), length) != 0)
    return std::nullopt;
  sockaddr_storage from{};
  length = sizeof from;
  if (::getsockname(probe.get(), reinterpret_cast<sockaddr*>(&from), &length) != 0)
    return std::nullopt;
  return numeric(reinterpret_cast<sockaddr*>(&from));
}

}  // namespace

std::string choose_address(const WireSetup& setup) {
  const std::vector<Interface> mine = interfaces();
  std::string card = loopback_domain();
  for (const Interface& interface : mine)
    if (!interface.is_loopback) card += ' ' + interface.address;
  const std::vector<std::string> cards = setup.allgather(card);

  if (!setup.network_interface.empty()) return address_of_interface(setup.network_interface);

  auto domain_of = [&](std::size_t member) {
    return cards[member].substr(0, cards[member].find(' '));
  };
  std::string unreachable;
  for (std::size_t member = 0; member < cards.size(); ++member) {
    if (domain_of(member) == domain_of(setup.me)) continue;
    std::istringstream addresses(cards[member]);
    std::string remote;
    addresses >> remote;  // the domain
    while (addresses >> remote) {
      // Bridges of container engines have the same address on every host: that one is ours.
      const bool is_ours = std::any_of(mine.begin(), mine.end(), [&](const Interface& interface) {
        return interface.address == remote;
      });
      if (is_ours) continue;
      if (auto source = source_address_towards(remote)) return *source;
      unreachable += ' ' + remote;
    }
    throw_error(ErrorCode::unavailable,
                "no route to rank {}, whose host has the addresses{}; name the interface to use "
                "with --network-interface",
                setup.world_ranks[member], unreachable.empty() ? " (none)" : unreachable);
  }
  return "127.0.0.1";
}

}  // namespace kolo::comm

#include "comm/wire/tcp/address.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/errors.h"
#include "comm/network_interface.h"

namespace kolo::comm::tcp {
namespace {

/// Equal for processes that reach each other through loopback: one kernel, one network namespace.
std::string loopback_domain() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  std::error_code ignored;
  return boot_id + std::filesystem::read_symlink("/proc/self/ns/net", ignored).string();
}

/// What a member tells about itself: its loopback domain and the addresses of its host.
struct Card {
  std::string domain;
  std::vector<std::string> addresses;
};

std::string written(const Card& card) {
  std::string text = card.domain;
  for (const auto& address : card.addresses) text += ' ' + address;
  return text;
}

Card read_card(const std::string& text) {
  std::istringstream words(text);
  Card card;
  words >> card.domain;
  for (std::string address; words >> address;) card.addresses.push_back(address);
  return card;
}

/// The local address from which packets to the host of `card` leave, if there is a route.
std::optional<SocketAddress> source_towards(const Card& card) {
  for (const auto& text : card.addresses) {
    const SocketAddress remote = SocketAddress::from_numeric(text);
    // Bridges of container engines have the same address on every host: that one is ours.
    if (is_own_address(remote)) continue;
    if (auto source = address_towards(remote)) return source;
  }
  return std::nullopt;
}

}  // namespace

SocketAddress choose_address(const WireSetup& setup) {
  Card mine{loopback_domain(), {}};
  for (const auto& interface : network_interfaces())
    if (!interface.address.is_loopback()) mine.addresses.push_back(interface.address.host());
  const std::vector<std::string> cards = setup.allgather(written(mine));
  if (!setup.network_interface.empty()) return address_of_interfaces(setup.network_interface);

  for (std::size_t member = 0; member < cards.size(); ++member) {
    const Card card = read_card(cards[member]);
    if (card.domain == mine.domain) continue;
    if (auto source = source_towards(card)) return *source;
    throw_error(ErrorCode::unavailable,
                "no route to rank {}, whose host says of itself:{}; name the interface to use with "
                "--network-interface",
                setup.world_ranks[member], cards[member].substr(card.domain.size()));
  }
  return SocketAddress::loopback();
}

}  // namespace kolo::comm::tcp

#include "comm/network_interface.h"

#include <sstream>

#include "base/env.h"
#include "base/errors.h"

namespace kolo::comm {

std::string network_interface_setting() {
  return setting("NETWORK_INTERFACE").value_or(setting("GLOO_IFACE").value_or(""));
}

SocketAddress address_of_interfaces(const std::string& names) {
  std::istringstream list(names);
  for (std::string name; std::getline(list, name, ',');) {
    try {
      return interface_address(name);
    } catch (const Error&) {
      // The next one, then.
    }
  }
  return interface_address(names);  // says which there are
}

std::vector<SocketAddress> addresses_to_listen(bool is_one_host) {
  if (is_one_host) return {SocketAddress::loopback()};
  if (const auto named = network_interface_setting(); !named.empty())
    return {address_of_interfaces(named)};
  std::vector<SocketAddress> addresses;
  for (const auto& interface : network_interfaces())
    if (!interface.address.is_loopback()) addresses.push_back(interface.address);
  if (addresses.empty()) addresses.push_back(SocketAddress::loopback());
  return addresses;
}

}  // namespace kolo::comm

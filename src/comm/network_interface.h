// Which addresses of this host ranks listen on.
#pragma once

#include <string>
#include <vector>

#include "base/socket.h"

namespace kolo::comm {

/// What --network-interface or KOLO_NETWORK_INTERFACE names; "" = nothing.
std::string network_interface_setting();

/// The address of the first of these interfaces (names or numeric addresses, separated by commas)
/// that is up. Throws not_found, listing the known ones.
SocketAddress address_of_interfaces(const std::string& names);

/// Without a port: loopback where all ranks share this host; else the interface that the user has
/// named; else all of them but loopback.
std::vector<SocketAddress> addresses_to_listen(bool is_one_host);

}  // namespace kolo::comm

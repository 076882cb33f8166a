// Which address of this host the other members of a TCP wire can reach.
#pragma once

#include "base/socket.h"
#include "comm/wire/messenger.h"

namespace kolo::comm::tcp {

/// An address of this host to listen on, without a port. Collective over the members.
///
/// With setup.network_interface: the address of that interface (several names separated by commas
/// are tried in turn; a numeric address is taken as it is). Otherwise loopback if all members share
/// this host, else the source address of the route to the first member on another host. Host names
/// are not looked up: they often resolve to 127.0.1.1, or not at all. Throws not_found,
/// unavailable.
SocketAddress choose_address(const WireSetup& setup);

}  // namespace kolo::comm::tcp

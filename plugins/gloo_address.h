// Which address of this host the other members can reach.
#pragma once

#include <string>

#include "comm/wire/messenger.h"

namespace kolo::comm {

/// A numeric address of this host for Gloo to listen on. Collective over the members.
///
/// With setup.network_interface: the address of that interface (several names separated by commas
/// are tried in turn; a numeric address is taken as it is). Otherwise loopback if all members share
/// this host, else the source address of the route to the first member on another host. Host names
/// are not looked up: they often resolve to 127.0.1.1, or not at all. Throws invalid_argument,
/// unavailable.
std::string choose_address(const WireSetup& setup);

}  // namespace kolo::comm

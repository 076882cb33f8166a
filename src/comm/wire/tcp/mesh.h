// Connections between all members of a TCP wire.
//
// Each member opens one port, tells the others its address and a fresh secret through
// WireSetup::allgather, and closes the port when all have come. The member with the greater index
// calls the one with the smaller. A Doorkeeper stands at the port, so that no byte of anybody who
// does not know the secret gets further than the handshake.
#pragma once

#include <vector>

#include "base/fd.h"
#include "comm/wire/messenger.h"

namespace kolo::comm::tcp {

/// Non-blocking sockets by member; the one of this rank is invalid. Collective over the members.
/// Throws unavailable on all of them, naming a member that could not be reached.
std::vector<Fd> connect_mesh(const WireSetup& setup);

}  // namespace kolo::comm::tcp

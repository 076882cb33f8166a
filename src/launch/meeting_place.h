// On which of its addresses the launcher's meeting place listens, and which one each host is told.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/secret.h"
#include "base/socket.h"
#include "comm/rendezvous/server.h"

namespace kolo::launch {

class RunBoard;

/// A host as the launcher knows it.
struct HostRoute {
  std::string host;
  bool is_remote = false;
  std::string seen_from;  ///< the launcher's address as the host sees it, "" if not known
};

struct MeetingAddresses {
  std::vector<SocketAddress> listen;  ///< no more than needed
  std::vector<std::size_t> of_host;   ///< index into `listen`, per host
};

/// Loopback for ranks of this machine. For another host: the address of `interface` if given, else
/// the one from which it was reached, else the one that routes to it.
/// Throws not_found for an unknown interface, unavailable if a host cannot be told an address.
MeetingAddresses choose_meeting_addresses(const std::vector<HostRoute>& hosts,
                                          const std::string& interface);

/// The server at which ranks meet, and how each host reaches it.
struct MeetingPlace {
  std::unique_ptr<comm::rendezvous::Server> server{};  ///< none for a rank alone
  std::vector<std::string> of_host{};                  ///< "" for a rank alone
};

/// What the ranks report goes to the board, if there is one; it must outlive the server. Throws as
/// choose_meeting_addresses() does.
MeetingPlace open_meeting_place(int ranks, const Secret& secret,
                                const std::vector<HostRoute>& hosts, const std::string& interface,
                                RunBoard* board = nullptr);

}  // namespace kolo::launch

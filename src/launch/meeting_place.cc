#include "launch/meeting_place.h"

#include <algorithm>

#include "base/errors.h"
#include "launch/run_board.h"

namespace kolo::launch {
namespace {

SocketAddress address_for(const HostRoute& host, const std::string& interface) {
  if (!host.is_remote) return SocketAddress::loopback();
  if (!interface.empty()) return interface_address(interface);
  if (!host.seen_from.empty()) {
    // Not ours if there is a gateway or a jump host in between.
    const SocketAddress seen = SocketAddress::from_numeric(host.seen_from);
    if (is_own_address(seen)) return seen;
  }
  const std::string name = host.host.substr(host.host.find('@') + 1);
  for (const auto& target : resolve_host(name))
    if (auto address = address_towards(target)) return *address;
  throw_error(ErrorCode::unavailable,
              "cannot tell which address of this machine {} reaches; --network-interface names it",
              host.host);
}

}  // namespace

MeetingAddresses choose_meeting_addresses(const std::vector<HostRoute>& hosts,
                                          const std::string& interface) {
  MeetingAddresses chosen;
  for (const auto& host : hosts) {
    const SocketAddress address = address_for(host, interface);
    auto known = std::find_if(chosen.listen.begin(), chosen.listen.end(),
                              [&](const SocketAddress& other) { return other.same_host(address); });
    chosen.of_host.push_back(static_cast<std::size_t>(known - chosen.listen.begin()));
    if (known == chosen.listen.end()) chosen.listen.push_back(address);
  }
  return chosen;
}

MeetingPlace open_meeting_place(int ranks, const Secret& secret,
                                const std::vector<HostRoute>& hosts, const std::string& interface,
                                RunBoard* board) {
  MeetingPlace place;
  place.of_host.resize(hosts.size());
  if (ranks == 1) return place;
  MeetingAddresses addresses = choose_meeting_addresses(hosts, interface);
  comm::rendezvous::ServerOptions options;
  options.size = ranks;
  options.secret = secret;
  options.listen = std::move(addresses.listen);
  if (board != nullptr)
    options.on_activity = [board](int rank, const comm::ActivityReport& report) {
      board->heard(rank, report);
    };
  place.server = std::make_unique<comm::rendezvous::Server>(std::move(options));
  for (std::size_t i = 0; i < hosts.size(); ++i)
    place.of_host[i] = place.server->addresses()[addresses.of_host[i]].str();
  return place;
}

}  // namespace kolo::launch

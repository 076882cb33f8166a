// What the hosts of a cluster say about themselves, as data, and the one order that people give to
// a host by hand.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "cluster/members.h"

namespace kolo::cluster {

/// "up", "drained" or "lost".
std::string state_of(const LinkedMember& linked);

/// {cluster, hosts}, where a host is {host, head, address, state, error, total, free, held,
/// processors, load, memory_bytes, available_bytes}; the last three once it was measured.
Json status_json(const std::string& name, const std::vector<LinkedMember>& members);

/// The host finishes what runs there and takes nothing new, or takes work again; returns what is
/// held of it. Throws not_found for an unknown host, unavailable or timeout if it does not answer.
exec::Holdings drain_host(const Cluster& cluster, const std::string& host, bool is_draining,
                          const std::string& owner);

}  // namespace kolo::cluster

// Which hosts of a cluster take how many ranks, and the reservation of all of them at once.
#pragma once

#include <memory>
#include <vector>

#include "base/deadline.h"
#include "cluster/gang.h"
#include "cluster/members.h"

namespace kolo::cluster {

/// What so many ranks need together.
exec::Amounts times(const exec::Amounts& each, int ranks);

enum class Spread {
  packed,  ///< as few hosts as possible, in the order of the cluster
  even,    ///< as many hosts as possible, with equal numbers as far as they go
};

/// How many ranks that need `each` fit on a host now; 0 if it is drained.
int room_for(const exec::Holdings& host, const exec::Amounts& each);

/// How many ranks each host takes, if each rank needs `each`; empty if there is no room for all.
/// Hosts that are drained take none.
std::vector<int> place(const std::vector<exec::Holdings>& hosts, int ranks,
                       const exec::Amounts& each, Spread spread);

/// Reserves room for the ranks on hosts that answer, and waits for it until the deadline. Tasks
/// that are started over the links then use it; it lasts as long as they. Returns how many ranks
/// each member takes. Throws unavailable, saying who has what is missing; at once if waiting cannot
/// help.
std::vector<int> reserve_ranks(std::vector<LinkedMember>& members, int ranks,
                               const exec::Amounts& each, Spread spread, Deadline deadline);

/// Reserves all of those hosts that nobody uses now, at most `most` of them, for tasks over their
/// links. Returns which. Throws unavailable if there is none, saying who has what.
std::vector<std::size_t> reserve_whole_hosts(std::vector<LinkedMember>& members, std::size_t most);

}  // namespace kolo::cluster

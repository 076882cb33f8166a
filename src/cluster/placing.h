// Which hosts of a cluster take how many ranks, and the reservation of all of them at once.
#pragma once

#include <memory>
#include <vector>

#include "base/deadline.h"
#include "cluster/gang.h"
#include "cluster/members.h"

namespace kolo::cluster {

enum class Spread {
  packed,  ///< as few hosts as possible, in the order of the cluster
  even,    ///< as many hosts as possible, with equal numbers as far as they go
};

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

}  // namespace kolo::cluster

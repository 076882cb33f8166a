// The ranks of `kolo run --cluster`: reserved on the hosts of a cluster, and started there.
#pragma once

#include <chrono>
#include <string>

#include "launch/supervisor.h"

namespace kolo::app {

/// Reserves the ranks, and waits for room for so long; all slots that are free for `ranks` 0. Fills
/// in the job's placements and links. Throws unavailable, saying who has what is missing.
void place_on_cluster(launch::ParallelJob& job, const std::string& cluster, int ranks,
                      std::chrono::milliseconds wait);

/// The same for an elastic job: each worker reserves its slot when it is started. Returns the
/// command that lists the hosts with the slots that the job has or could have.
std::string follow_cluster(launch::ParallelJob& job, const std::string& cluster);

}  // namespace kolo::app

// Machines that commands of the user's make and take away, as in a cloud.
//
// Both commands are run by a shell in the folder of the cluster file and find KOLO_CLUSTER in their
// environment. `create` is run at every `kolo up`: it makes what is missing, at least
// KOLO_MIN_WORKERS and at most KOLO_MAX_WORKERS machines beside the head (each only if the file
// says it), and prints the names or addresses of all machines, one per line and the head first.
// `delete` takes all of them away; what is gone already is no failure.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/cluster_file.h"

namespace kolo::cluster {

/// Throws unavailable with the last line that the command said, and if it prints no host.
std::vector<std::string> create_machines(const ClusterFile& file, Deadline deadline);
void delete_machines(const std::string& cluster, const MachineCommands& machines,
                     Deadline deadline);

}  // namespace kolo::cluster

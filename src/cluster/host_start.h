// How a host comes into a cluster: it is prepared as the file says, and its custodian answers.
#pragma once

#include "cluster/bring_up.h"
#include "cluster/node_keeper.h"

namespace kolo::cluster {

/// Starts the custodian unless it stands. `member` learns where it listens. Throws; every message
/// names the host.
HostReport start_on_host(const ClusterFile& file, const Cluster& cluster, const UpOptions& options,
                         Member& member);

/// The same for a node of a batch job, whose custodian stands already: it runs the commands.
HostReport start_on_node(const ClusterFile& file, const Cluster& cluster, const UpOptions& options,
                         const KeptNodes::Node& node, Member& member);

}  // namespace kolo::cluster

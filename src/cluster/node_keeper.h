// Keeps a custodian on every node of an allocation, from inside of it.
//
// `kolo custodian nodes CLUSTER TICKET` is what the batch job of a cluster runs. It starts a
// custodian on each node as launchers do (srun or ssh), has it listen, and writes down where. The
// custodians end with it, so nothing stays on a node when the job is over, however it ends. It
// itself ends when all of them have, and when its cluster was forgotten or has a newer job.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"

namespace kolo::cluster {

/// What the keeper has written down.
struct KeptNodes {
  struct Node {
    std::string host;
    std::string address{};
    std::string error{};  ///< why nothing listens there
  };
  std::vector<Node> nodes{};
  std::string error{};  ///< why there is none
};

/// The file of the cluster as it was when its nodes were asked for.
std::filesystem::path kept_cluster_file(const std::string& cluster);

/// Nothing as long as the keeper with this ticket has not answered.
std::optional<KeptNodes> read_kept_nodes(const std::string& cluster, const std::string& ticket);

/// `kolo custodian nodes`.
int keep_nodes(const std::string& cluster, const std::string& ticket);

}  // namespace kolo::cluster

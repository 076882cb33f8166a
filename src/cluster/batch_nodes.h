// The nodes of a cluster that come from a batch system.
//
// A batch job keeps a custodian on each of its nodes (node_keeper.h) and says in the folder of the
// cluster where they listen; that folder must be on a file system which the nodes share. Inside an
// allocation the job is a process of this machine, and the allocation stays when it ends.
#pragma once

#include <string>
#include <vector>

#include "base/deadline.h"
#include "cluster/bring_up.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "cluster/node_keeper.h"

namespace kolo::cluster {

/// Submits a job unless one is there, which is written down before, and waits until its nodes
/// answer, however long that takes; tells what it waits for. Throws unavailable if the job ends
/// before, with the end of what it said.
KeptNodes take_nodes(const ClusterFile& file, Cluster& cluster, const Tell& tell);

/// Ends the job and waits for its end. Throws unavailable, timeout.
void give_nodes_back(const Cluster& cluster, Deadline deadline);

/// "job 12 of slurm is queued (Resources)"; the id is empty if it was refused.
std::string describe_job(const BatchJob& job);

}  // namespace kolo::cluster

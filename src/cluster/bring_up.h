// Makes a cluster stand, and ends it.
//
// Whatever is interrupted can be repeated: the key is kept before the first host is touched, a host
// where a custodian of this cluster stands already is taken over, and `bring_down` looks for
// custodians that were started but never heard of.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cluster/cluster_file.h"

namespace kolo::cluster {

/// What happened on a host.
struct HostReport {
  std::string host;
  std::string what;  ///< "stands already", "3 slots at 10.0.0.1:4711"
  bool is_failure = false;
};
using Tell = std::function<void(const HostReport&)>;

struct UpOptions {
  std::chrono::milliseconds host_time{60'000};      ///< to reach a host and start there
  std::chrono::milliseconds setup_time{3'600'000};  ///< for the commands of the user, each
};

/// Makes the cluster of the file stand: hosts that stand stay as they are, new ones are prepared
/// and started, and those that are no longer in the file end, or are drained if they are in use.
/// Tells what happens on each host. Returns whether the head and `min_workers` workers stand.
bool bring_up(const ClusterFile& file, const UpOptions& options, const Tell& tell);

/// Ends all custodians with everything that runs there, and forgets the cluster when none is left.
/// Returns whether that is so; `force` forgets it in any case. Hosts are given `time` to answer.
bool bring_down(const std::string& name, bool force, std::chrono::milliseconds time,
                const Tell& tell);

}  // namespace kolo::cluster

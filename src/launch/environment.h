// The environment that ranks run in.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "launch/hosts.h"

namespace kolo::launch {

/// NAME=VALUE entries.
using Environment = std::vector<std::string>;

/// `additions` replace entries of the same name.
Environment merge_environment(Environment base, const Environment& additions);

/// Without the variables by which a launcher tells a process its rank: they are of the launcher's
/// own place, if it is itself a rank of something, and would contradict ours.
Environment without_launcher_variables(const Environment& environment);

/// What is carried to other hosts: all but what belongs to this host or this login.
Environment forwardable(const Environment& environment);

/// NAME or NAME=VALUE as given to -x; NAME alone takes the value from `environment`.
/// Throws invalid_argument.
std::string resolve_variable(std::string_view text, const Environment& environment);

/// KOLO_RANK and so on, for each rank of `placement`.
Environment rank_variables(const std::vector<Placement>& placements, const Placement& placement,
                           int local_rank, const std::string& rendezvous);

/// What only the rank's host can say: the secret's descriptor and its holder, and
/// OMP_NUM_THREADS = `threads` unless set.
void add_host_variables(Environment& environment, int secret_fd, pid_t agent, int threads);

}  // namespace kolo::launch

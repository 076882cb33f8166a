// The table of transports, and the choice between them.
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "comm/bootstrap.h"
#include "comm/group.h"
#include "comm/liveness.h"
#include "comm/shm/arena.h"

namespace kolo::comm {

struct TransportInfo {
  std::string_view name;
  std::string_view summary;
};

/// For `kolo list transports` and for messages about unknown names.
std::span<const TransportInfo> transports();

struct TransportOptions {
  std::string transport = "auto";
  std::chrono::milliseconds timeout{0};
  std::string network_interface;
};

/// Makes the group of all ranks. Collective. "auto" is solo for one rank, shm for one host, and
/// shm inside hosts with tcp across (mpi, if MPI started the ranks) for several.
/// Throws invalid_argument for an unknown name, failed_precondition for one that cannot work here.
std::unique_ptr<Group> make_world_group(const std::shared_ptr<Bootstrap>& bootstrap,
                                        const std::shared_ptr<Arena>& arena,
                                        const std::shared_ptr<Liveness>& liveness,
                                        const TransportOptions& options);

}  // namespace kolo::comm

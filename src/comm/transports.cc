#include "comm/transports.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/errors.h"
#include "comm/shm/shm_group.h"

namespace kolo::comm {
namespace {

constexpr TransportInfo kTransports[] = {
    {"auto", "solo, shm, or shm+gloo (shm+mpi under mpirun), by where the ranks are"},
    {"shm", "shared memory; all ranks on one host"},
    {"gloo", "TCP between all ranks, also those of one host"},
    {"mpi", "MPI between all ranks; needs mpirun or srun"},
    {"shm+gloo", "shared memory inside hosts, TCP across"},
    {"shm+mpi", "shared memory inside hosts, MPI across"},
};

}  // namespace

std::span<const TransportInfo> transports() { return kTransports; }

std::unique_ptr<Group> make_world_group(const std::shared_ptr<Bootstrap>& bootstrap,
                                        const std::shared_ptr<Arena>& arena,
                                        const std::shared_ptr<Liveness>& liveness,
                                        const TransportOptions& options) {
  const Topology& topology = bootstrap->topology();
  if (topology.size() == 1) return make_solo_group();
  if (topology.host_count() == 1)
    return make_shm_group(*bootstrap, topology.ranks_on_host(0), arena, liveness,
                          {.timeout = options.timeout}, Deadline::after(options.timeout));
  throw_error(ErrorCode::unsupported, "several hosts");
}

}  // namespace kolo::comm

// A transport is a choice of two things: shared memory inside a host or not, and which plug-in
// carries messages between hosts. `auto` decides by the topology and by who started the ranks.
#include "comm/transports.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/errors.h"
#include "base/registry.h"
#include "comm/shm/shm_group.h"
#include "comm/wire/wire.h"

namespace kolo::comm {
namespace {

constexpr TransportInfo kTransports[] = {
    {"auto", "solo, shm, or shm+tcp (shm+mpi under mpirun), by where the ranks are"},
    {"shm", "shared memory; all ranks on one host"},
    {"tcp", "TCP between all ranks, also those of one host"},
    {"mpi", "MPI between all ranks; needs mpirun or srun"},
    {"shm+tcp", "shared memory inside hosts, TCP across"},
    {"shm+mpi", "shared memory inside hosts, MPI across"},
};

struct Choice {
  bool shm = false;
  std::string wire;  // "", "tcp" or "mpi"
};

/// Names of other systems for the same.
std::string own_name(const std::string& name) {
  if (name == "gloo") return "tcp";
  if (name == "shm+gloo") return "shm+tcp";
  return name;
}

Choice parse(const std::string& given, const Topology& topology, const Bootstrap& bootstrap) {
  const std::string name = own_name(given);
  if (name == "auto") {
    if (topology.size() == 1) return {};
    if (topology.host_count() == 1) return {.shm = true, .wire = ""};
    return {.shm = true, .wire = bootstrap.wire_plugin().empty() ? "tcp" : "mpi"};
  }
  if (std::none_of(std::begin(kTransports), std::end(kTransports),
                   [&](const auto& known) { return known.name == name; })) {
    std::vector<std::string_view> names;
    for (const auto& known : kTransports) names.push_back(known.name);
    throw_unknown_name("transport", name, names, ErrorCode::invalid_argument);
  }
  if (topology.size() == 1) return {};
  if (name == "shm") {
    if (topology.host_count() > 1)
      throw_error(
          ErrorCode::failed_precondition,
          "transport shm works on one host only, but the ranks are on {} hosts; use transport auto",
          topology.host_count());
    return {.shm = true, .wire = ""};
  }
  const bool shm = name.starts_with("shm+");
  return {.shm = shm, .wire = shm ? name.substr(4) : name};
}

const WirePlugin& plugin_for(const std::string& wire, const Bootstrap& bootstrap) {
  if (wire == "tcp") return load_wire_plugin("tcp");
  if (bootstrap.wire_plugin().empty())
    throw_error(ErrorCode::failed_precondition,
                "transport mpi needs ranks that MPI started (mpirun, srun --mpi=…), but these were "
                "started by {}; use kolo run --mpi, or transport auto",
                bootstrap.describe());
  return load_wire_plugin(bootstrap.wire_plugin());
}

}  // namespace

std::span<const TransportInfo> transports() { return kTransports; }

std::unique_ptr<Group> make_world_group(const std::shared_ptr<Bootstrap>& bootstrap,
                                        const std::shared_ptr<Arena>& arena,
                                        const std::shared_ptr<Liveness>& liveness,
                                        const TransportOptions& options) {
  const Topology& topology = bootstrap->topology();
  const Choice choice = parse(options.transport, topology, *bootstrap);
  if (topology.size() == 1) return make_solo_group();

  // Whoever waits on a host in vain must say so before those on other hosts give up its host.
  const auto local_timeout = choice.wire.empty() ? options.timeout : wait_limit(options.timeout);
  const auto make_local = [&]() -> std::unique_ptr<Group> {
    if (topology.local_size() == 1) return make_solo_group();
    return make_shm_group(*bootstrap, topology.ranks_on_host(topology.host_of(topology.rank())),
                          arena, liveness, {.timeout = local_timeout},
                          Deadline::after(options.timeout));
  };
  if (choice.wire.empty()) return make_local();

  ConnectWire connect = make_connect_wire(bootstrap, liveness, plugin_for(choice.wire, *bootstrap),
                                          options.network_interface, options.timeout);
  WireOptions wire;
  wire.name = choice.wire;
  wire.timeout = options.timeout;
  wire.liveness = liveness;
  wire.memory = arena;
  if (!choice.shm) return make_flat_wire_group(topology, std::move(connect), std::move(wire));
  return make_hierarchical_group(make_local(), topology, std::move(connect), std::move(wire));
}

}  // namespace kolo::comm

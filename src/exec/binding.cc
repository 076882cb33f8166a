#include "exec/binding.h"

#include <hwloc.h>
#include <hwloc/glibc-sched.h>

#include <algorithm>
#include <memory>

#include "base/errors.h"

namespace kolo::exec {
namespace {

struct DestroyTopology {
  void operator()(hwloc_topology_t topology) const { ::hwloc_topology_destroy(topology); }
};
using HardwareTopology = std::unique_ptr<hwloc_topology, DestroyTopology>;

/// Only what this process may use. Takes some milliseconds, so only when asked for.
HardwareTopology load_topology() {
  hwloc_topology_t raw = nullptr;
  if (::hwloc_topology_init(&raw) != 0)
    throw_error(ErrorCode::unsupported, "hwloc cannot look at this machine");
  HardwareTopology topology(raw);
  ::hwloc_topology_set_flags(
      raw, HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING | HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM);
  if (::hwloc_topology_load(raw) != 0)
    throw_error(ErrorCode::unsupported, "hwloc cannot look at this machine");
  return topology;
}

}  // namespace

BindTo parse_bind_to(std::string_view name) {
  if (name == "none") return BindTo::none;
  if (name == "core") return BindTo::core;
  if (name == "socket") return BindTo::socket;
  throw_error(ErrorCode::invalid_argument, "cannot bind to '{}'; known: core, socket, none", name);
}

std::vector<int> usable_processor_numbers() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return {0};
  std::vector<int> numbers;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) numbers.push_back(cpu);
  return numbers;
}

int usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int threads_for_rank(const std::optional<cpu_set_t>& bound_to, int ranks_here) {
  const int own = bound_to ? CPU_COUNT(&*bound_to) : usable_processors() / ranks_here;
  return std::max(1, own);
}

std::vector<cpu_set_t> processors_for_ranks(BindTo bind_to, int ranks) {
  if (bind_to == BindTo::none) return {};
  HardwareTopology topology = load_topology();
  const auto kind = bind_to == BindTo::core ? HWLOC_OBJ_CORE : HWLOC_OBJ_PACKAGE;
  const int count = ::hwloc_get_nbobjs_by_type(topology.get(), kind);
  if (count < 1)
    throw_error(ErrorCode::unsupported, "cannot bind to {}: the machine does not tell of any",
                bind_to == BindTo::core ? "cores" : "sockets");
  std::vector<cpu_set_t> sets(static_cast<std::size_t>(ranks));
  for (int i = 0; i < ranks; ++i) {
    hwloc_obj_t object =
        ::hwloc_get_obj_by_type(topology.get(), kind, static_cast<unsigned>(i % count));
    cpu_set_t& set = sets[static_cast<std::size_t>(i)];
    CPU_ZERO(&set);
    ::hwloc_cpuset_to_glibc_sched_affinity(topology.get(), object->cpuset, &set, sizeof set);
  }
  return sets;
}

}  // namespace kolo::exec

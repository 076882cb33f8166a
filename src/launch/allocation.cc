#include "launch/allocation.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "exec/ssh.h"
#include "launch/slurm.h"

namespace kolo::launch {
namespace {

struct NodefileSystem {
  std::string_view name;
  const char* job;
  const char* nodefile;
};
constexpr NodefileSystem kNodefileSystems[] = {{"cobalt", "COBALT_JOBID", "COBALT_NODEFILE"},
                                               {"pbs", "PBS_JOBID", "PBS_NODEFILE"},
                                               {"lsf", "LSB_JOBID", "LSB_DJOB_HOSTFILE"},
                                               {"grid-engine", "JOB_ID", "PE_HOSTFILE"}};

}  // namespace

std::vector<Host> parse_nodefile(std::string_view text) {
  std::vector<Host> hosts;
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name, slots;
    if (!(words >> name) || name[0] == '#') continue;
    const int count = words >> slots ? std::clamp(std::atoi(slots.c_str()), 1, kMostSlots) : 1;
    bool known = false;
    for (auto& host : hosts)
      if (host.name == name) {
        host.slots = std::min(host.slots + count, kMostSlots);
        known = true;
      }
    if (!known) hosts.push_back({name, count});
  }
  return hosts;
}

std::optional<Allocation> find_whole_allocation() {
  // Slurm gives the shell of an allocation a step with a number from this on.
  constexpr long long kFirstOwnStep = 0xfffffff0;
  const auto step = environment("SLURM_STEP_ID");
  if (step && std::atoll(step->c_str()) < kFirstOwnStep) return std::nullopt;
  for (const char* part : {"KOLO_JOB_ID", "KOLO_RANK", "KOLO_TRIAL_ID"})
    if (environment(part)) return std::nullopt;
  auto allocation = find_allocation();
  if (allocation && allocation->hosts.size() < 2) return std::nullopt;
  return allocation;
}

std::vector<std::string> custodian_command(const std::string& system, const std::string& node,
                                           const std::string& kolo) {
  if (system == "here" || is_this_machine(node)) return {};
  if (system == "slurm") {
    // The node that this script itself runs on needs no srun.
    if (environment("SLURMD_NODENAME") == node) return {};
    return {"srun",    "--overlap",       "--nodes=1",          "--ntasks=1", "--mpi=none",
            "--quiet", "--cpu-bind=none", "--nodelist=" + node, kolo,         "custodian"};
  }
  return exec::ssh_command(exec::ssh_from_environment(kolo), node);
}

std::optional<Allocation> find_allocation() {
  if (auto hosts = slurm_hosts())
    return Allocation{"slurm", environment("SLURM_JOB_ID").value_or(""), std::move(*hosts)};
  for (const auto& system : kNodefileSystems) {
    const auto job = environment(system.job), file = environment(system.nodefile);
    if (!job || !file) continue;
    std::vector<Host> hosts;
    try {
      hosts = parse_nodefile(read_file(*file));
    } catch (const Error& error) {
      throw_error(ErrorCode::unavailable,
                  "cannot tell the nodes of this allocation of {}: {}; name them with -H",
                  system.name, error.message());
    }
    if (hosts.empty())
      throw_error(ErrorCode::unavailable, "{} names no node; name them with -H", *file);
    return Allocation{std::string(system.name), *job, std::move(hosts)};
  }
  return std::nullopt;
}

}  // namespace kolo::launch

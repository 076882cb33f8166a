// kolo launcher: runs jobs on the nodes it has.
#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "commands.h"
#include "exec/binding.h"
#include "exec/ssh.h"
#include "jobs/pilot/launcher.h"
#include "jobs_common.h"
#include "launch/allocation.h"

namespace kolo::app {
namespace {

using jobs::LauncherNode;

constexpr Setting kTable[] = {
    {"consume-all", "", "", "", "", "jobs of all workflows (the default)"},
    {"wf-filter", "", "", "PART", "", "only jobs whose workflow has this part"},
    {"job-mode", "-j", "", "MODE", "mixed",
     "mixed: every job, nodes are shared as jobs permit; serial, mpi: as Balsam"},
    {"time-limit-minutes", "-t", "", "N", "none",
     "ends then; what runs is ended and runs again later"},
    {"nodes", "-n", "", "N", "1", "so many nodes, all on this machine (to try things out)"},
    {"hosts", "-H", "", "a:4,b:4", "the allocation's",
     "these hosts, with so many cores each; reached by ssh"},
    {"cpus-per-node", "", "", "N", "all", "cores that jobs may use on each node"},
    {"gpus-per-node", "", "", "N", "0", "GPUs of each node"},
    {"limit-nodes", "", "", "N", "all", "uses only so many of the nodes"},
    {"offset-nodes", "", "", "N", "0", "and leaves out so many before them"},
    {"runner", "", "", "NAME", "kolo, or srun in Slurm",
     "starts jobs of several ranks: kolo, openmpi, mpich, srun, aprun, or a template"},
    {"idle-seconds", "", "", "S", "10", "ends after having had nothing to do for so long"},
    {"persistent", "", "", "", "", "never ends for that"},
    {"lease-seconds", "", "", "S", "60", "silent for so long, its jobs are given to others"},
    {"grace-seconds", "", "", "S", "10", "between SIGTERM and SIGKILL"},
    {"num-transition-threads", "", "", "N", "5", "scripts and copies at the same time"},
    {"help", "-h", "", "", "", "this text"}};

std::vector<launch::Host> hosts_of(const Options& options, std::string& system) {
  if (const auto list = options.text("hosts")) return launch::parse_hosts(*list);
  if (const auto count = options.integer("nodes", 1)) {
    std::vector<launch::Host> nodes(static_cast<std::size_t>(*count), {"localhost", 0});
    system = "here";
    return nodes;
  }
  if (auto allocation = launch::find_allocation()) {
    system = allocation->system;
    return allocation->hosts;
  }
  system = "here";
  return {{"localhost", 0}};
}

std::vector<std::string> link_command(const std::string& host, const std::string& system,
                                      const std::string& kolo) {
  if (system == "here" || launch::is_this_machine(host)) return {};
  if (system == "slurm") {
    // The node that this script itself runs on needs no srun.
    if (environment("SLURMD_NODENAME") == host) return {};
    return {"srun",    "--overlap",          "--nodes=1", "--ntasks=1", "--mpi=none",
            "--quiet", "--nodelist=" + host, kolo,        "custodian"};
  }
  return exec::ssh_command(exec::ssh_from_environment(kolo), host);
}

}  // namespace

int run_command_launcher(const Arguments& arguments) {
  const Options options(kTable, arguments);
  if (options.has("help")) {
    print_options_help("kolo launcher [OPTIONS]",
                       "Runs jobs of the database on the nodes of this allocation, or of this "
                       "machine, until\nits time is over or nothing is left to do.",
                       kTable);
    return 0;
  }
  options.expect_words(0, 0, "kolo launcher [OPTIONS]");
  auto database = open_jobs();
  jobs::LauncherOptions launcher;
  launcher.kolo = own_program();
  std::string system;
  auto hosts = hosts_of(options, system);
  const auto first = static_cast<std::size_t>(options.integer("offset-nodes", 0).value_or(0));
  const auto most =
      static_cast<std::size_t>(options.integer("limit-nodes", 1).value_or(std::ssize(hosts)));
  if (first >= hosts.size())
    throw_error(ErrorCode::invalid_argument, "--offset-nodes {}: there are {} nodes", first,
                hosts.size());
  const auto cores = options.integer("cpus-per-node", 1);
  for (std::size_t i = first; i < hosts.size() && i < first + most; ++i) {
    const bool here = system == "here";
    LauncherNode node{here && hosts.size() > 1 ? fmt::format("{}{}", "node", i) : hosts[i].name,
                      hosts[i].name, link_command(hosts[i].name, system, launcher.kolo)};
    // A batch system's slots are tasks, not cores: the custodian counts those itself.
    const bool given = options.has("hosts") && hosts[i].slots > 1;
    node.cores = static_cast<int>(cores.value_or(given ? hosts[i].slots : 0));
    node.gpus = static_cast<int>(options.integer("gpus-per-node", 0).value_or(0));
    node.forward_environment = !node.command.empty() && node.command[0] != "srun";
    launcher.nodes.push_back(std::move(node));
  }
  launcher.mode = jobs::parse_job_mode(options.text("job-mode").value_or("mixed"));
  launcher.workflow = options.text("wf-filter").value_or("");
  launcher.runner = options.text("runner").value_or(
      environment("KOLO_RUNNER").value_or(system == "slurm" ? "srun" : "kolo"));
  if (const auto minutes = options.number("time-limit-minutes", 0))
    launcher.time_limit = std::chrono::seconds(static_cast<long long>(*minutes * 60));
  launcher.lease_seconds = options.number("lease-seconds", 0.1).value_or(60);
  launcher.idle_seconds = options.number("idle-seconds", 0).value_or(10);
  launcher.persistent = options.has("persistent");
  launcher.grace = std::chrono::milliseconds(
      static_cast<long long>(options.number("grace-seconds", 0).value_or(10) * 1000));
  launcher.hooks_at_once =
      static_cast<int>(options.integer("num-transition-threads", 1).value_or(5));
  const auto summary = jobs::run_launcher(database, launcher);
  fmt::print("{} jobs finished, {} failed, {} runs\n", summary.finished, summary.failed,
             summary.runs);
  return 0;
}

}  // namespace kolo::app

// kolo launcher: runs jobs on the nodes it has.
#include <fmt/format.h>

#include <cstdlib>

#include "base/errors.h"
#include "base/plural.h"
#include "cluster/placing.h"
#include "cluster_argument.h"
#include "commands.h"
#include "exec/binding.h"
#include "jobs/pilot/launcher.h"
#include "jobs_database.h"
#include "launch/allocation.h"
#include "launch/runners.h"
#include "launcher_logs.h"
#include "names.h"

namespace kolo::app {
namespace {

using jobs::LauncherNode;

struct LauncherCommandOptions {
  jobs::LauncherOptions launcher;
  bool consume_all = false;
  std::string job_mode = "mixed";
  std::optional<double> time_limit_minutes;
  std::optional<int> nodes, cpus_per_node, limit_nodes;
  std::string hosts, cluster;
  int gpus_per_node = 0, offset_nodes = 0;
  double grace_seconds = 10, database_patience_seconds = 3600;
  void declare(OptionSet& set);
};

constexpr Option<jobs::LauncherOptions> kLauncherWorkflow[] = {
    {&jobs::LauncherOptions::workflow, "wf-filter", "NAME",
     "Run only jobs of this workflow, or of a pattern: 'TEST*'."},
};
constexpr Option<LauncherCommandOptions> kLauncherJobs[] = {
    {&LauncherCommandOptions::consume_all, "consume-all", "",
     "Run jobs of all workflows, which is the default."},
    {&LauncherCommandOptions::job_mode, "job-mode", "mixed|serial|mpi",
     "Run every job and share nodes as jobs permit (mixed), or only jobs of one rank (serial) or "
     "of whole nodes (mpi) as Balsam does.",
     aliases("-j"), choices("mixed|serial|mpi")},
};
constexpr Option<LauncherCommandOptions> kLauncherNodes[] = {
    {&LauncherCommandOptions::hosts, "hosts", "HOST:CORES,…",
     "Use these hosts and this many cores of each. They are reached by ssh.", aliases("-H"),
     fallback("those of the allocation, else this machine")},
    {&LauncherCommandOptions::cluster, "cluster", "NAME",
     "Use the hosts of this cluster, made by `kolo up`, that are free now.", names(cluster_names)},
    {&LauncherCommandOptions::nodes, "nodes", "N",
     "Act as if this machine were N nodes, to try things out.", aliases("-n"), least(1)},
    {&LauncherCommandOptions::cpus_per_node, "cpus-per-node", "N",
     "Let jobs use N cores of each node.", fallback("all"), least(1)},
    {&LauncherCommandOptions::gpus_per_node, "gpus-per-node", "N",
     "Let jobs use N GPUs of each node.", least(0)},
    {&LauncherCommandOptions::limit_nodes, "limit-nodes", "N", "Use at most N of the nodes.",
     fallback("all"), least(1)},
    {&LauncherCommandOptions::offset_nodes, "offset-nodes", "N",
     "Leave out the first N nodes, which another launcher may use.", least(0)},
};
constexpr Option<jobs::LauncherOptions> kLauncherRunner[] = {
    {&jobs::LauncherOptions::runner, "runner", "NAME",
     "Start jobs of several ranks by this runner, or by a template of a command; `kolo list "
     "runners` shows the names.",
     variables("RUNNER"), fallback("srun inside Slurm, else kolo"), names(runner_names)},
};
constexpr Option<LauncherCommandOptions> kLauncherTime[] = {
    {&LauncherCommandOptions::time_limit_minutes, "time-limit-minutes", "N",
     "End after N minutes. Jobs that still run are ended and run again later.", aliases("-t"),
     fallback("none"), least(0)},
};
constexpr Option<jobs::LauncherOptions> kLauncherIdle[] = {
    {&jobs::LauncherOptions::idle_seconds, "idle-seconds", "SECONDS",
     "End after this many seconds without a job to run.", least(0)},
    {&jobs::LauncherOptions::persistent, "persistent", "",
     "Wait for new jobs instead of ending when there are none."},
    {&jobs::LauncherOptions::lease_seconds, "lease-seconds", "SECONDS",
     "Let other launchers take over the jobs when this one has been silent for this many seconds.",
     least(0.1)},
};
constexpr Option<LauncherCommandOptions> kLauncherGrace[] = {
    {&LauncherCommandOptions::grace_seconds, "grace-seconds", "SECONDS",
     "Kill a job with SIGKILL if it still runs this many seconds after SIGTERM.", least(0)},
    {&LauncherCommandOptions::database_patience_seconds, "database-patience", "SECONDS",
     "End with an error when no job runs and the job database has not answered for this many "
     "seconds.",
     least(0)},
};
constexpr Option<jobs::LauncherOptions> kLauncherHooks[] = {
    {&jobs::LauncherOptions::hooks_at_once, "num-transition-threads", "N",
     "Run up to N preprocess and postprocess commands and copies at the same time.", least(1)},
};

void LauncherCommandOptions::declare(OptionSet& set) {
  set.add("Jobs", kLauncherWorkflow, launcher);
  set.add("Jobs", kLauncherJobs, *this);
  set.add("Nodes", kLauncherNodes, *this);
  set.add("Nodes", kLauncherRunner, launcher);
  set.add("Time", kLauncherTime, *this);
  set.add("Time", kLauncherIdle, launcher);
  set.add("Time", kLauncherGrace, *this);
  set.add("Other options", kLauncherHooks, launcher);
}

std::vector<launch::Host> launcher_hosts(const LauncherCommandOptions& options,
                                         std::string& system) {
  if (!options.hosts.empty()) return launch::parse_hosts(options.hosts);
  if (options.nodes) {
    system = "here";
    return {static_cast<std::size_t>(*options.nodes), {"localhost", 0}};
  }
  if (auto allocation = launch::find_allocation()) {
    system = allocation->system;
    return allocation->hosts;
  }
  system = "here";
  return {{"localhost", 0}};
}

/// Hosts that are reserved as a whole, as long as the launcher is there.
std::vector<LauncherNode> nodes_of_cluster(const LauncherCommandOptions& options) {
  if (!options.hosts.empty() || options.nodes || options.offset_nodes > 0)
    throw_error(ErrorCode::invalid_argument,
                "--cluster excludes --hosts, --nodes and --offset-nodes");
  const auto found = cluster::load_cluster(cluster_named(options.cluster));
  auto members = std::make_shared<std::vector<cluster::LinkedMember>>(cluster::link_all(
      found, cluster::owner_name("kolo launcher"), Deadline::after(cluster::answer_time(found))));
  const std::size_t most =
      options.limit_nodes ? static_cast<std::size_t>(*options.limit_nodes) : members->size();
  std::vector<LauncherNode> nodes;
  for (const std::size_t i : cluster::reserve_whole_hosts(*members, most)) {
    const auto& linked = (*members)[i];
    LauncherNode node{linked.member.host, linked.member.host, {}};
    if (!found.ssh.user.empty()) node.host = found.ssh.user + "@" + node.host;
    node.cores = options.cpus_per_node.value_or(linked.holdings.total.slots);
    node.gpus = options.gpus_per_node > 0 ? options.gpus_per_node : linked.holdings.total.gpus;
    node.take_link = [members, i] { return std::move((*members)[i].link); };
    nodes.push_back(std::move(node));
  }
  // Jobs of several ranks reach the other hosts by ssh.
  if (!found.ssh.identity_file.empty())
    ::setenv("KOLO_SSH_IDENTITY_FILE", found.ssh.identity_file.c_str(), /*overwrite=*/0);
  if (found.ssh.port > 0)
    ::setenv("KOLO_SSH_PORT", std::to_string(found.ssh.port).c_str(), /*overwrite=*/0);
  return nodes;
}

/// The nodes to use, out of all that there are.
std::vector<LauncherNode> nodes_of(const LauncherCommandOptions& options, std::string& system) {
  if (!options.cluster.empty()) return nodes_of_cluster(options);
  const auto hosts = launcher_hosts(options, system);
  const auto first = static_cast<std::size_t>(options.offset_nodes);
  const auto most =
      options.limit_nodes ? static_cast<std::size_t>(*options.limit_nodes) : hosts.size();
  if (first >= hosts.size())
    throw_error(ErrorCode::invalid_argument, "--offset-nodes {}: there are only {} nodes", first,
                hosts.size());
  const std::string& kolo = options.launcher.kolo;
  std::vector<LauncherNode> nodes;
  for (std::size_t i = first; i < hosts.size() && i < first + most; ++i) {
    const bool here = system == "here";
    LauncherNode node{here && hosts.size() > 1 ? fmt::format("node{}", i) : hosts[i].name,
                      hosts[i].name, launch::custodian_command(system, hosts[i].name, kolo)};
    // A batch system's slots are tasks, not cores: the custodian counts those itself.
    const bool given = !options.hosts.empty() && hosts[i].slots > 1;
    node.cores = options.cpus_per_node.value_or(given ? hosts[i].slots : 0);
    node.gpus = options.gpus_per_node;
    node.forward_environment = !node.command.empty() && node.command[0] != "srun";
    nodes.push_back(std::move(node));
  }
  return nodes;
}

/// Runs it, with its end in the log whatever it is.
jobs::LauncherSummary run_logged(jobs::JobDatabase& database,
                                 const jobs::LauncherOptions& options) {
  const auto file = begin_launcher_log(database.folder());
  try {
    return jobs::run_launcher(database, options);
  } catch (const Error& error) {
    // The command says it on standard error itself.
    if (file) file->add(error.message());
    throw;
  }
}

int run_launcher(LauncherCommandOptions& options, OptionSet& given) {
  auto database = open_jobs();
  jobs::LauncherOptions& launcher = options.launcher;
  launcher.kolo = own_program();
  std::string system;
  launcher.nodes = nodes_of(options, system);
  launcher.mode = jobs::parse_job_mode(options.job_mode);
  if (!given.given("runner"))
    launcher.runner = system == "slurm" ? "srun" : "kolo";
  else if (launcher.runner.find(' ') == std::string::npos)  // otherwise it is a template
    (void)launch::runners().at(launcher.runner);
  if (options.time_limit_minutes)
    launcher.time_limit =
        std::chrono::seconds(static_cast<long long>(*options.time_limit_minutes * 60));
  launcher.grace = std::chrono::milliseconds(static_cast<long long>(options.grace_seconds * 1000));
  launcher.database_patience =
      std::chrono::seconds(static_cast<long long>(options.database_patience_seconds));
  const auto summary = run_logged(database, launcher);
  fmt::print("{} finished, {} failed, {}\n", counted(summary.finished, "job"), summary.failed,
             counted(summary.runs, "run"));
  if (summary.left > 0)
    fmt::print(stderr, "kolo launcher: {} left that cannot run here; {}\n",
               counted(summary.left, "job"), summary.obstacle);
  const bool has_none =
      !launcher.workflow.empty() && database.count_by_state(launcher.workflow).empty();
  if (has_none)
    fmt::print(stderr, "kolo launcher: no job has the workflow '{}'\n", launcher.workflow);
  // Whoever came for nothing should notice.
  return summary.runs == 0 && (summary.left > 0 || has_none) ? 1 : 0;
}

}  // namespace

constinit const Command kLauncher{
    .name = "launcher",
    .summary = "Run jobs of the database on the nodes of this allocation, or on this machine",
    .examples =
        "kolo launcher --nodes 4\nkolo launcher --wf-filter TEST --time-limit-minutes 60\n"
        "kolo launcher --cluster lab --persistent\n",
    .notes =
        "It ends when its time is over or when there is nothing left to do. What it did is in "
        "log/launcher_DATE_PID.log in the folder of the database; the newest 100 logs are kept, "
        "and "
        "all of the last day.\n"
        "SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 end it: its jobs are told to end, and can be "
        "run again later. A second SIGTERM, SIGINT or SIGHUP kills them at once.",
    .options = declared<LauncherCommandOptions>,
    .run = run_declared<LauncherCommandOptions, run_launcher>,
};

}  // namespace kolo::app

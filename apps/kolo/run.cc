// kolo run: a program as many ranks.
#include <fmt/format.h>

#include <filesystem>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/registry.h"
#include "base/subprocess.h"
#include "cluster_run.h"
#include "comm/transports.h"
#include "commands.h"
#include "elastic_options.h"
#include "exec/binding.h"
#include "kolo/virtual_ranks.h"
#include "launch/environment.h"
#include "launch/mpirun.h"
#include "launch/slurm.h"
#include "launch/supervisor.h"
#include "run_options.h"
#include "tune/protocol/trial_client.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

/// `here` is the number of slots of this machine if no hosts are named.
std::vector<launch::Host> hosts_of(const RunOptions& options, const OptionSet& given,
                                   std::optional<int> here) {
  // What was typed wins over what lies around in variables and files.
  if (given.typed("hosts") && given.typed("hostfile"))
    throw_error(ErrorCode::invalid_argument, "--hosts and --hostfile exclude each other");
  if (given.typed("hostfile")) return launch::read_hostfile(options.hostfile);
  if (!options.hosts.empty()) return launch::parse_hosts(options.hosts);
  if (!options.hostfile.empty()) return launch::read_hostfile(options.hostfile);
  if (auto allocated = launch::slurm_hosts()) return *allocated;
  if (!here)
    throw_error(ErrorCode::invalid_argument,
                "the number of ranks is missing: give -np N, or hosts with -H");
  return {{"localhost", *here}};
}

/// "" = not chosen.
std::string transport_of(const RunOptions& options, const OptionSet& given) {
  if (options.gloo + options.mpi + given.typed("transport") > 1)
    throw_error(ErrorCode::invalid_argument, "--gloo, --mpi and --transport exclude each other");
  const std::string name = options.gloo ? "tcp" : options.mpi ? "mpi" : options.transport;
  if (name.empty()) return name;
  std::vector<std::string_view> known;
  for (const auto& transport : comm::transports()) {
    if (transport.name == name) return name;
    known.push_back(transport.name);
  }
  throw_unknown_name("transport", name, known, ErrorCode::invalid_argument);
}

launch::SshOptions ssh_of(const RunOptions& options) {
  launch::SshOptions ssh;
  ssh.command = cli::split(options.ssh, ' ');
  if (ssh.command.empty()) throw_error(ErrorCode::invalid_argument, "--ssh: the command is empty");
  ssh.port = options.ssh_port;
  ssh.identity_file = options.ssh_identity_file;
  ssh.host_keys = exec::host_keys_setting();
  ssh.remote_kolo = options.remote_kolo.empty() ? fs::read_symlink("/proc/self/exe").string()
                                                : options.remote_kolo;
  ssh.connect_timeout_seconds = std::max(1, static_cast<int>(options.start_timeout));
  return ssh;
}

void check_program(const launch::ParallelJob& job) {
  // On other hosts the agent says so; here it can be said before anything is started.
  for (const auto& placement : job.placements) {
    if (!placement.is_local) continue;
    find_program(job.argv[0], environment("PATH").value_or("/usr/bin:/bin"), job.directory);
    return;
  }
}

/// What the engine of each rank reads from its environment.
void add_engine_settings(const RunOptions& options, std::vector<std::string>& variables) {
  const auto add = [&](const char* name, const auto& value) {
    variables.push_back(fmt::format("KOLO_{}={}", name, value));
  };
  if (options.fusion_threshold_mb)
    add("FUSION_THRESHOLD", static_cast<std::int64_t>(*options.fusion_threshold_mb * (1 << 20)));
  if (!options.timeline_filename.empty()) add("TIMELINE", options.timeline_filename);
  if (options.timeline_mark_cycles) add("TIMELINE_MARK_CYCLES", 1);
  if (options.autotune) add("AUTOTUNE", 1);
  if (!options.autotune_log_file.empty()) add("AUTOTUNE_LOG", options.autotune_log_file);
  if (options.no_stall_check) add("STALL_CHECK_DISABLE", 1);
  if (options.stall_warning) add("STALL_CHECK_TIME_SECONDS", *options.stall_warning);
  if (options.stall_shutdown) add("STALL_SHUTDOWN_TIME_SECONDS", *options.stall_shutdown);
}

/// Ranks tell their launcher what they do, unless the user does not want that.
void add_activity(std::vector<std::string>& variables) {
  if (!environment("KOLO_ACTIVITY")) variables.push_back("KOLO_ACTIVITY=1");
}

/// Throws if there may be more ranks than virtual ranks.
void check_virtual_ranks(const RunOptions& options, int ranks) {
  if (options.virtual_ranks) VirtualRanks(*options.virtual_ranks, ranks);
}

/// All but where the ranks are.
launch::ParallelJob job_of(const RunOptions& options, const OptionSet& given) {
  launch::ParallelJob job;
  job.argv = options.program;
  std::error_code error;
  job.directory = fs::current_path(error);
  if (error)
    throw_error(ErrorCode::failed_precondition, "the current directory no longer exists: {}",
                error.message());

  job.start_timeout =
      std::chrono::milliseconds(static_cast<long long>(options.start_timeout * 1000));
  job.ssh = ssh_of(options);
  // Inside a trial the ranks speak to the study over the connection of this process.
  if (const auto fd = tune::inherited_trial_fd()) job.descriptors = {{*fd, tune::kTrialFd}};
  job.network_interface = options.network_interface;
  job.bind_to = launch::parse_bind_to(options.bind_to);
  job.output.timestamps = options.timestamps;
  job.output.directory = options.output_filename;
  job.verbose = options.verbose;

  job.environment.push_back(fmt::format("KOLO_START_TIMEOUT={}", options.start_timeout));
  if (auto transport = transport_of(options, given); !transport.empty())
    job.environment.push_back("KOLO_TRANSPORT=" + transport);
  if (!job.network_interface.empty())
    job.environment.push_back("KOLO_NETWORK_INTERFACE=" + job.network_interface);
  if (!options.log_level.empty()) {
    log::set_level(log::parse_level(options.log_level));
    job.environment.push_back("KOLO_LOG_LEVEL=" + options.log_level);
  }
  add_engine_settings(options, job.environment);
  if (options.virtual_ranks)
    for (auto& variable : launch::virtual_rank_variables(*options.virtual_ranks))
      job.environment.push_back(std::move(variable));
  const auto own = current_environment();
  for (const auto& variable : options.env)
    job.environment = launch::merge_environment(std::move(job.environment),
                                                {launch::resolve_variable(variable, own)});
  return job;
}

int slots_of(const std::vector<launch::Host>& hosts) {
  int slots = 0;
  for (const auto& host : hosts) slots += host.slots;
  return slots;
}

void place_on_hosts(launch::ParallelJob& job, const std::vector<launch::Host>& hosts,
                    std::optional<int> ranks) {
  job.placements = launch::place_ranks(hosts, ranks.value_or(slots_of(hosts)));
  for (auto& placement : job.placements)
    placement.is_local = launch::is_this_machine(placement.host);
}

int run_run(RunOptions& options, OptionSet& given) {
  if (options.check_build) {
    OptionSet none = kInfo.options();
    return kInfo.run(none);
  }
  launch::ParallelJob job = job_of(options, given);
  const bool names_hosts = given.typed("hosts") || given.typed("hostfile");
  if (given.typed("cluster") && names_hosts)
    throw_error(ErrorCode::invalid_argument, "--cluster excludes --hosts and --hostfile");
  const bool on_cluster = !options.cluster.empty() && !names_hosts;
  if (given.typed("cluster-wait") && !on_cluster)
    throw_error(ErrorCode::invalid_argument,
                "--cluster-wait waits for slots of a cluster; name it with --cluster");
  if (is_elastic(options, given)) {
    if (transport_of(options, given).ends_with("mpi"))
      throw_error(ErrorCode::invalid_argument,
                  "an elastic job cannot use MPI, whose ranks stay the same; leave --mpi out");
    if (on_cluster && !options.discovery_script.empty())
      throw_error(ErrorCode::invalid_argument,
                  "--cluster and --host-discovery-script exclude each other");
    const auto here = options.max_np     ? options.max_np
                      : options.num_proc ? options.num_proc
                                         : options.min_np;
    add_activity(job.environment);
    const bool has_script = on_cluster || !options.discovery_script.empty();
    auto hosts = has_script ? std::vector<launch::Host>{} : hosts_of(options, given, here);
    auto elastic = elastic_job_of(options, std::move(job), std::move(hosts));
    if (on_cluster) elastic.discovery_script = follow_cluster(elastic.job, options.cluster);
    check_virtual_ranks(options, elastic.most_ranks);
    return launch::elastic::run_elastic_job(elastic);
  }
  if (on_cluster)
    place_on_cluster(job, options.cluster, options.num_proc.value_or(0),
                     std::chrono::milliseconds(static_cast<long long>(options.cluster_wait * 1e3)));
  else
    place_on_hosts(job, hosts_of(options, given, options.num_proc), options.num_proc);
  check_virtual_ranks(options, job.placements.back().first_rank + job.placements.back().ranks);
  check_program(job);
  const bool by_mpi = transport_of(options, given).ends_with("mpi");
  if (by_mpi && job.open_link)
    throw_error(ErrorCode::unsupported, "mpirun cannot start ranks on a cluster; use --hosts");
  if (by_mpi) launch::become_mpirun(job);  // also shm+mpi
  add_activity(job.environment);
  return launch::run_job(job);
}

}  // namespace

constinit const Command kRun{
    .name = "run",
    .summary =
        "Run a program as several ranks that can find each other, on this machine and on "
        "others",
    .examples =
        "kolo run -np 4 ./train --epochs 3\n"
        "kolo run -np 8 -H a:4,b:4 ./train\n"
        "kolo run --min-np 2 --max-np 8 --host-discovery-script ./hosts.sh ./train\n"
        "kolo run -np 8 --cluster lab ./train\n",
    .options = declared<RunOptions>,
    .run = run_declared<RunOptions, run_run>,
    .heading = "Commands to run programs",
};

}  // namespace kolo::app

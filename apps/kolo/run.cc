// kolo run: a program as many ranks.
#include <unistd.h>

#include <filesystem>
#include <sstream>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "comm/transports.h"
#include "commands.h"
#include "exec/binding.h"
#include "launch/mpirun.h"
#include "launch/slurm.h"
#include "launch/supervisor.h"
#include "run_settings.h"

namespace kolo::app {
namespace {

namespace fs = std::filesystem;

constexpr int kMostRanks = 1'000'000;
constexpr double kDefaultStartSeconds = 30;

void print_run_help() {
  fmt::print(
      "Runs PROGRAM as several ranks that can find each other, and passes on their output.\n\n"
      "Usage: kolo run [OPTIONS] PROGRAM [ARGUMENTS]\n\n"
      "  kolo run -np 4 ./train --epochs 3\n"
      "  kolo run -np 8 -H a:4,b:4 ./train\n\n"
      "Options (end at the program's name):\n{}",
      help_text(run_settings()));
}

std::vector<launch::Host> hosts_of(const Settings& settings, std::optional<int> ranks) {
  if (settings.has("hosts") && settings.has("hostfile")) {
    const bool both_typed =
        settings.source("hosts") == "--hosts" && settings.source("hostfile") == "--hostfile";
    if (both_typed)
      throw_error(ErrorCode::invalid_argument, "--hosts and --hostfile exclude each other");
    // What was typed wins over what lies around in variables and files.
    if (settings.source("hostfile") == "--hostfile")
      return launch::read_hostfile(*settings.text("hostfile"));
  }
  if (auto list = settings.text("hosts")) return launch::parse_hosts(*list);
  if (auto file = settings.text("hostfile")) return launch::read_hostfile(*file);
  if (auto allocated = launch::slurm_hosts()) return *allocated;
  if (!ranks)
    throw_error(ErrorCode::invalid_argument, "how many ranks? Give -np N, or hosts with -H");
  return {{"localhost", *ranks}};
}

/// "" = not chosen.
std::string transport_of(const Settings& settings) {
  const bool gloo = settings.flag("gloo"), mpi = settings.flag("mpi");
  const bool named = settings.has("transport") && settings.source("transport") == "--transport";
  if (gloo + mpi + named > 1)
    throw_error(ErrorCode::invalid_argument, "--gloo, --mpi and --transport exclude each other");
  const std::string name = gloo ? "gloo" : mpi ? "mpi" : settings.text("transport").value_or("");
  if (name.empty()) return name;
  std::string known;
  for (const auto& transport : comm::transports()) {
    if (transport.name == name) return name;
    known += (known.empty() ? "" : ", ") + std::string(transport.name);
  }
  throw_error(ErrorCode::invalid_argument, "transport '{}' is unknown; known: {}", name, known);
}

launch::SshOptions ssh_of(const Settings& settings, double start_seconds) {
  launch::SshOptions ssh;
  if (auto command = settings.text("ssh")) {
    std::istringstream words(*command);
    ssh.command.assign(std::istream_iterator<std::string>(words), {});
    if (ssh.command.empty())
      throw_error(ErrorCode::invalid_argument, "{}: the command is empty", settings.source("ssh"));
  }
  ssh.port = settings.integer("ssh-port", 1, 65535);
  ssh.identity_file = settings.text("ssh-identity-file").value_or("");
  ssh.remote_kolo =
      settings.text("remote-kolo").value_or(fs::read_symlink("/proc/self/exe").string());
  ssh.connect_timeout_seconds = std::max(1, static_cast<int>(start_seconds));
  return ssh;
}

void check_program(const launch::Job& job) {
  // On other hosts the agent says so; here it can be said before anything is started.
  for (const auto& placement : job.placements) {
    if (!placement.is_local) continue;
    find_program(job.argv[0], environment("PATH").value_or("/usr/bin:/bin"), job.directory);
    return;
  }
}

launch::Job job_of(const Settings& settings, std::vector<std::string> program) {
  launch::Job job;
  if (program.empty())
    throw_error(ErrorCode::invalid_argument,
                "which program? Usage: kolo run [OPTIONS] PROGRAM [ARGUMENTS]");
  job.argv = std::move(program);
  const auto ranks = settings.integer("num-proc", 1, kMostRanks);
  const auto hosts = hosts_of(settings, ranks);
  int slots = 0;
  for (const auto& host : hosts) slots += host.slots;
  job.placements = launch::place_ranks(hosts, ranks.value_or(slots));
  for (auto& placement : job.placements)
    placement.is_local = launch::is_this_machine(placement.host);
  std::error_code error;
  job.directory = fs::current_path(error);
  if (error)
    throw_error(ErrorCode::failed_precondition, "the current directory is gone: {}",
                error.message());

  const double seconds = settings.positive_number("start-timeout").value_or(kDefaultStartSeconds);
  job.start_timeout = std::chrono::milliseconds(static_cast<long long>(seconds * 1000));
  job.ssh = ssh_of(settings, seconds);
  job.network_interface = settings.text("network-interface").value_or("");
  job.bind_to = launch::parse_bind_to(settings.text("bind-to").value_or("none"));
  job.output.timestamps = settings.flag("prefix-output-with-timestamp");
  job.output.directory = settings.text("output-filename").value_or("");
  job.verbose = settings.flag("verbose");

  job.environment.push_back(fmt::format("KOLO_START_TIMEOUT={}", seconds));
  if (auto transport = transport_of(settings); !transport.empty())
    job.environment.push_back("KOLO_TRANSPORT=" + transport);
  if (!job.network_interface.empty())
    job.environment.push_back("KOLO_NETWORK_INTERFACE=" + job.network_interface);
  if (auto level = settings.text("log-level")) {
    log::set_level(log::parse_level(*level));
    job.environment.push_back("KOLO_LOG_LEVEL=" + *level);
  }
  const auto own = current_environment();
  for (const auto& variable : settings.texts("env"))
    job.environment = launch::merge_environment(std::move(job.environment),
                                                {launch::resolve_variable(variable, own)});
  return job;
}

}  // namespace

int run_command_run(const Arguments& arguments) {
  auto [options, program] = split_arguments(run_settings(), arguments);
  const Settings settings(run_settings(), options, "config-file");
  if (settings.flag("help")) {
    print_run_help();
    return 0;
  }
  if (settings.flag("check-build")) return run_command_info({});
  const launch::Job job = job_of(settings, std::move(program));
  check_program(job);
  if (transport_of(settings).ends_with("mpi")) launch::become_mpirun(job);  // also shm+mpi
  return launch::run_job(job);
}

}  // namespace kolo::app

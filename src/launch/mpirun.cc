#include "launch/mpirun.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "base/errors.h"
#include "base/subprocess.h"

namespace kolo::launch {
namespace {

/// "a:4,b:4", the form that both understand.
std::string host_list(const ParallelJob& job) {
  std::vector<std::string> hosts;
  for (const auto& placement : job.placements) {
    const bool is_v6 = placement.host.find(':') != std::string::npos;
    hosts.push_back(is_v6 ? fmt::format("[{}]:{}", placement.host, placement.ranks)
                          : fmt::format("{}:{}", placement.host, placement.ranks));
  }
  return fmt::format("{}", fmt::join(hosts, ","));
}

std::vector<std::string> variable_names(const ParallelJob& job) {
  std::vector<std::string> names;
  for (const auto& entry :
       merge_environment(exec::forwardable(current_environment()), job.environment))
    names.push_back(entry.substr(0, entry.find('=')));
  return names;
}

std::string bind_name(BindTo bind_to) {
  switch (bind_to) {
    case BindTo::core: return "core";
    case BindTo::socket: return "socket";
    case BindTo::none: break;
  }
  return "none";
}

/// Before the program: gives it the numbers of its rank under the names that kolo run uses, for
/// programs that know no MPI. The program's words are the shell's arguments, which it does not
/// read.
constexpr const char* kNameRank =
    R"(export KOLO_RANKS_BY=mpirun KOLO_RANK="${OMPI_COMM_WORLD_RANK-$PMI_RANK}" )"
    R"(KOLO_SIZE="${OMPI_COMM_WORLD_SIZE-$PMI_SIZE}" )"
    R"(KOLO_LOCAL_RANK="${OMPI_COMM_WORLD_LOCAL_RANK-$MPI_LOCALRANKID}" )"
    R"(KOLO_LOCAL_SIZE="${OMPI_COMM_WORLD_LOCAL_SIZE-$MPI_LOCALNRANKS}"; exec "$@")";

void append(std::vector<std::string>& argv, std::initializer_list<std::string> words) {
  argv.insert(argv.end(), words);
}

std::vector<std::string> openmpi_command(const ParallelJob& job, int ranks) {
  std::vector<std::string> argv = {
      "mpirun",       "-np",          std::to_string(ranks), "-H",
      host_list(job), "--tag-output", "--bind-to",           bind_name(job.bind_to)};
  if (::geteuid() == 0) argv.push_back("--allow-run-as-root");
  if (job.output.timestamps) argv.push_back("--timestamp-output");
  if (!job.output.directory.empty())
    append(argv, {"--output-filename", job.output.directory.string()});
  std::vector<std::string> ssh(job.ssh.command.begin() + 1, job.ssh.command.end());
  if (job.ssh.port) append(ssh, {"-p", std::to_string(*job.ssh.port)});
  if (!job.ssh.identity_file.empty()) append(ssh, {"-i", job.ssh.identity_file});
  append(argv, {"--mca", "plm_rsh_agent", job.ssh.command[0]});
  if (!ssh.empty()) append(argv, {"--mca", "plm_rsh_args", fmt::format("{}", fmt::join(ssh, " "))});
  if (!job.network_interface.empty())
    append(argv, {"--mca", "btl_tcp_if_include", job.network_interface, "--mca",
                  "oob_tcp_if_include", job.network_interface});
  for (const auto& name : variable_names(job)) append(argv, {"-x", name});
  return argv;
}

std::vector<std::string> mpich_command(const ParallelJob& job, int ranks) {
  std::vector<std::string> argv = {"mpirun", "-np",          std::to_string(ranks),
                                   "-hosts", host_list(job), "-prepend-rank"};
  if (job.bind_to != BindTo::none) append(argv, {"-bind-to", bind_name(job.bind_to)});
  if (!job.output.directory.empty())
    append(argv, {"-outfile-pattern", (job.output.directory / "rank.%r.stdout").string(),
                  "-errfile-pattern", (job.output.directory / "rank.%r.stderr").string()});
  if (job.ssh.command[0] != "ssh") append(argv, {"-launcher-exec", job.ssh.command[0]});
  if (!job.network_interface.empty()) append(argv, {"-iface", job.network_interface});
  append(argv, {"-genvlist", fmt::format("{}", fmt::join(variable_names(job), ","))});
  return argv;
}

}  // namespace

MpiFlavour find_mpirun() {
  CommandResult result;
  try {
    result = run_command({"mpirun", "--version"}, Deadline::after(std::chrono::seconds(10)));
  } catch (const Error& error) {
    throw_error(ErrorCode::unsupported, "--mpi needs mpirun: {}", error.message());
  }
  const std::string text = result.output + result.errors;
  for (const char* word : {"Open MPI", "OpenRTE"})  // under its own name, and under others
    if (text.find(word) != std::string::npos) return MpiFlavour::openmpi;
  if (text.find("HYDRA") != std::string::npos) return MpiFlavour::mpich;
  throw_error(ErrorCode::unsupported,
              "the mpirun in PATH is neither Open MPI's nor MPICH's; start the program with it "
              "directly instead of kolo run");
}

std::vector<std::string> mpirun_command(const ParallelJob& job, MpiFlavour flavour) {
  int ranks = 0;
  for (const auto& placement : job.placements) ranks += placement.ranks;
  auto argv =
      flavour == MpiFlavour::openmpi ? openmpi_command(job, ranks) : mpich_command(job, ranks);
  append(argv, {"sh", "-c", kNameRank, "sh"});
  argv.insert(argv.end(), job.argv.begin(), job.argv.end());
  return argv;
}

void become_mpirun(const ParallelJob& job) {
  const auto argv = mpirun_command(job, find_mpirun());
  if (job.verbose) fmt::print(stderr, "kolo run: {}\n", fmt::join(argv, " "));
  for (const auto& entry : job.environment) {
    const auto equals = entry.find('=');
    ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  std::vector<char*> pointers;
  for (const auto& word : argv) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  std::fflush(nullptr);
  ::execvp(pointers[0], pointers.data());
  throw_errno("cannot run mpirun");
}

}  // namespace kolo::launch

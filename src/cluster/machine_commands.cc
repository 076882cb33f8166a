#include "cluster/machine_commands.h"

#include <algorithm>
#include <sstream>

#include "base/errors.h"
#include "base/pipe.h"
#include "base/words.h"
#include "cluster/host_shell.h"

namespace kolo::cluster {
namespace {

std::string run_machine_command(std::string_view key, const std::string& variables,
                                const MachineCommands& machines, const std::string& command,
                                Deadline deadline) {
  const std::string line =
      fmt::format("cd {} && {} exec /bin/sh -c {}", shell_quoted(machines.directory.string()),
                  variables, shell_quoted(command));
  // `kolo up` that is killed leaves no command behind that still makes machines.
  const Pipe held = make_pipe();
  const CommandResult result =
      run_command({"/bin/sh", "-c", guarded_line(line)}, deadline, held.read.get());
  if (!result.ok())
    throw_error(ErrorCode::unavailable, "{} (`{}` of provider.{})", last_line_of(result), command,
                key);
  return result.output;
}

}  // namespace

std::vector<std::string> create_machines(const ClusterFile& file, Deadline deadline) {
  std::string variables = "KOLO_CLUSTER=" + shell_quoted(file.name);
  if (file.min_workers) variables += fmt::format(" KOLO_MIN_WORKERS={}", *file.min_workers);
  if (file.max_workers) variables += fmt::format(" KOLO_MAX_WORKERS={}", *file.max_workers);
  std::istringstream lines(
      run_machine_command("create", variables, *file.machines, file.machines->create, deadline));
  std::vector<std::string> hosts;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string host, more;
    if (!(words >> host)) continue;
    if (words >> more || std::find(hosts.begin(), hosts.end(), host) != hosts.end())
      throw_error(ErrorCode::unavailable,
                  "provider.create printed '{}'; it must print each host once, one per line", line);
    hosts.push_back(std::move(host));
  }
  if (hosts.empty()) throw_error(ErrorCode::unavailable, "provider.create printed no host");
  if (file.max_workers)
    hosts.resize(std::min(hosts.size(), static_cast<std::size_t>(*file.max_workers) + 1));
  return hosts;
}

void delete_machines(const std::string& cluster, const MachineCommands& machines,
                     Deadline deadline) {
  if (machines.remove.empty()) return;
  run_machine_command("delete", "KOLO_CLUSTER=" + shell_quoted(cluster), machines, machines.remove,
                      deadline);
}

}  // namespace kolo::cluster

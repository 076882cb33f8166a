#include "launch/runners.h"

#include <fmt/ranges.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "base/errors.h"

namespace kolo::launch {
namespace {

constexpr Entry<std::string_view> kRunners[] = {
    {"kolo", "kolo run: by fork here and ssh elsewhere",
     "kolo run -np {ranks} -H {slots} {flags} --"},
    {"openmpi", "mpirun of Open MPI",
     "mpirun -np {ranks} --host {slots} --map-by slot:OVERSUBSCRIBE --bind-to none {variables} "
     "{flags}"},
    {"mpich", "mpiexec of MPICH", "mpiexec -n {ranks} -hosts {slots} {flags}"},
    {"srun", "inside an allocation of Slurm",
     "srun --overlap --nodes={nodes} --ntasks={ranks} --ntasks-per-node={ranks_per_node} "
     "--nodelist={hosts} --cpus-per-task={threads} {flags}"},
    {"aprun", "on a Cray with ALPS",
     "aprun -n {ranks} -N {ranks_per_node} -L {hosts} -cc depth -d {threads} -j {threads_per_core} "
     "{flags}"},
};
constexpr RunnerTable kRunnerTable{"runner", kRunners};

/// Hosts once each, in the order given, with how often they were.
std::vector<std::pair<std::string, int>> shares_of(const std::vector<std::string>& hosts) {
  std::vector<std::pair<std::string, int>> shares;
  for (const auto& host : hosts) {
    bool known = false;
    for (auto& [name, times] : shares)
      if (name == host) {
        ++times;
        known = true;
      }
    if (!known) shares.emplace_back(host, 1);
  }
  return shares;
}

}  // namespace

const RunnerTable& runners() { return kRunnerTable; }

std::vector<std::string> runner_command(std::string_view runner, const RanksToStart& start) {
  const bool is_template = runner.find(' ') != std::string_view::npos;
  std::istringstream words{std::string(is_template ? runner : kRunnerTable.at(runner).make)};
  std::vector<std::string> hosts, slots;
  for (const auto& [host, times] : shares_of(start.hosts)) {
    hosts.push_back(host);
    slots.push_back(fmt::format("{}:{}", host, times * start.ranks_per_node));
  }
  const auto nodes = static_cast<int>(start.hosts.size());
  const std::map<std::string_view, std::string> values = {
      {"ranks", std::to_string(nodes * start.ranks_per_node)},
      {"ranks_per_node", std::to_string(start.ranks_per_node)},
      {"nodes", std::to_string(nodes)},
      {"hosts", fmt::format("{}", fmt::join(hosts, ","))},
      {"slots", fmt::format("{}", fmt::join(slots, ","))},
      {"threads", std::to_string(start.threads)},
      {"threads_per_core", std::to_string(start.threads_per_core)}};

  std::vector<std::string> command;
  for (std::string word; words >> word;) {
    if (word == "{flags}") {
      command.insert(command.end(), start.flags.begin(), start.flags.end());
      continue;
    }
    if (word == "{variables}") {
      for (const auto& name : start.variables) command.insert(command.end(), {"-x", name});
      continue;
    }
    for (auto open = word.find('{'); open != std::string::npos; open = word.find('{', open)) {
      const auto end = word.find('}', open);
      const std::string name = word.substr(open + 1, end - open - 1);
      const auto value = values.find(name);
      if (end == std::string::npos || value == values.end())
        throw_error(ErrorCode::invalid_argument,
                    "the runner's template has {{{}}}, which is unknown; known: ranks, "
                    "ranks_per_node, nodes, hosts, slots, threads, threads_per_core, flags, "
                    "variables",
                    name);
      word.replace(open, end - open + 1, value->second);
      open += value->second.size();
    }
    command.push_back(word);
  }
  if (command.empty()) throw_error(ErrorCode::invalid_argument, "the runner's template is empty");
  if (runner == "kolo") command[0] = std::filesystem::read_symlink("/proc/self/exe").string();
  command.insert(command.end(), start.program.begin(), start.program.end());
  return command;
}

}  // namespace kolo::launch

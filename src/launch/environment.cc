#include "launch/environment.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/errors.h"
#include "kolo/topology.h"

namespace kolo::launch {
namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

/// '*' at the beginning or the end of a pattern stands for anything.
bool matches(std::string_view name, std::string_view pattern) {
  if (pattern.ends_with('*')) return name.starts_with(pattern.substr(0, pattern.size() - 1));
  if (pattern.starts_with('*')) return name.ends_with(pattern.substr(1));
  return name == pattern;
}

template <std::size_t N>
bool matches_any(std::string_view name, const std::string_view (&patterns)[N]) {
  return std::any_of(std::begin(patterns), std::end(patterns),
                     [&](std::string_view pattern) { return matches(name, pattern); });
}

constexpr std::string_view kLauncherVariables[] = {
    "KOLO_RANK", "KOLO_SIZE", "KOLO_LOCAL_RANK", "KOLO_LOCAL_SIZE", "KOLO_CROSS_RANK",
    "KOLO_CROSS_SIZE", "KOLO_RANKS_PER_HOST", "KOLO_RENDEZVOUS", "KOLO_SECRET_FD", "KOLO_AGENT_PID",
    "KOLO_HOSTNAME",
    // Open MPI, PMIx, MPICH
    "OMPI_COMM_WORLD_*", "OMPI_MCA_ess*", "OMPI_MCA_orte_*", "OMPI_APP_CTX_NUM_PROCS",
    "OMPI_FIRST_RANKS", "OMPI_FILE_LOCATION", "PMIX_*", "PMI_*", "HYDI_*", "MPI_LOCALNRANKS",
    "MPI_LOCALRANKID",
    // Slurm's step; its allocation stays
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_STEP_*", "SLURM_STEPID", "SLURM_TASK_PID"};

/// Of the host: its name, devices, sockets, runtime directories. Of the login: who, where, how.
/// Of the shell: its own state and functions.
constexpr std::string_view kPerHostVariables[] = {"HOSTNAME",
                                                  "HOST",
                                                  "HOSTTYPE",
                                                  "MACHTYPE",
                                                  "TMPDIR",
                                                  "TMP",
                                                  "TEMP",
                                                  "DISPLAY",
                                                  "WAYLAND_*",
                                                  "XAUTHORITY",
                                                  "XDG_*",
                                                  "DBUS_*",
                                                  "TTY",
                                                  "*CUDA_VISIBLE_DEVICES",
                                                  "HIP_VISIBLE_DEVICES",
                                                  "ROCR_VISIBLE_DEVICES",
                                                  "SLURM*",
                                                  "SSH_*",
                                                  "HOME",
                                                  "USER",
                                                  "LOGNAME",
                                                  "SHELL",
                                                  "MAIL",
                                                  "GPG_*",
                                                  "SUDO_*",
                                                  "SHLVL",
                                                  "PWD",
                                                  "OLDPWD",
                                                  "_",
                                                  "BASH_FUNC_*",
                                                  "PS1",
                                                  "PS2",
                                                  "LS_COLORS",
                                                  "TERM_*",
                                                  "WINDOWID"};

}  // namespace

Environment merge_environment(Environment base, const Environment& additions) {
  for (const auto& addition : additions) {
    auto same = std::find_if(base.begin(), base.end(), [&](const std::string& entry) {
      return name_of(entry) == name_of(addition);
    });
    if (same == base.end())
      base.push_back(addition);
    else
      *same = addition;
  }
  return base;
}

Environment without_launcher_variables(const Environment& environment) {
  Environment kept;
  for (const auto& entry : environment)
    if (!matches_any(name_of(entry), kLauncherVariables)) kept.push_back(entry);
  return kept;
}

Environment forwardable(const Environment& environment) {
  Environment kept;
  for (const auto& entry : without_launcher_variables(environment))
    if (!matches_any(name_of(entry), kPerHostVariables)) kept.push_back(entry);
  return kept;
}

std::string resolve_variable(std::string_view text, const Environment& environment) {
  const std::string_view name = name_of(text);
  const bool is_name = !name.empty() && std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_';
  });
  if (!is_name || std::isdigit(static_cast<unsigned char>(name.front())))
    throw_error(ErrorCode::invalid_argument, "-x {}: '{}' is not the name of a variable", text,
                name);
  if (text.size() > name.size()) return std::string(text);
  for (const auto& entry : environment)
    if (name_of(entry) == name) return entry;
  throw_error(ErrorCode::invalid_argument, "-x {}: there is no such variable; give it as {}=VALUE",
              text, text);
}

Environment rank_variables(const std::vector<Placement>& placements, const Placement& placement,
                           int local_rank, const std::string& rendezvous) {
  std::vector<int> counts, host_of_rank;
  for (std::size_t host = 0; host < placements.size(); ++host) {
    counts.push_back(placements[host].ranks);
    host_of_rank.insert(host_of_rank.end(), static_cast<std::size_t>(placements[host].ranks),
                        static_cast<int>(host));
  }
  const Topology topology(placement.first_rank + local_rank, std::move(host_of_rank));
  return {fmt::format("KOLO_RANK={}", topology.rank()),
          fmt::format("KOLO_SIZE={}", topology.size()),
          fmt::format("KOLO_LOCAL_RANK={}", topology.local_rank()),
          fmt::format("KOLO_LOCAL_SIZE={}", topology.local_size()),
          fmt::format("KOLO_CROSS_RANK={}", topology.cross_rank()),
          fmt::format("KOLO_CROSS_SIZE={}", topology.cross_size()),
          fmt::format("KOLO_RANKS_PER_HOST={}", fmt::join(counts, ",")),
          fmt::format("KOLO_HOSTNAME={}", placement.host),
          fmt::format("KOLO_RENDEZVOUS={}", rendezvous)};
}

void add_host_variables(Environment& environment, int secret_fd, pid_t agent, int threads) {
  environment = merge_environment(
      std::move(environment),
      {fmt::format("KOLO_SECRET_FD={}", secret_fd), fmt::format("KOLO_AGENT_PID={}", agent)});
  auto add_default = [&](std::string entry) {
    const bool is_set = std::any_of(environment.begin(), environment.end(), [&](const auto& known) {
      return name_of(known) == name_of(entry) && known.size() > name_of(known).size() + 1;
    });
    if (!is_set) environment = merge_environment(std::move(environment), {std::move(entry)});
  };
  add_default(fmt::format("OMP_NUM_THREADS={}", threads));
  add_default("PYTHONUNBUFFERED=1");  // or lines of Python programs would come late, in blocks
}

}  // namespace kolo::launch

#include "exec/environment.h"

#include <algorithm>

namespace kolo::exec {
namespace {

/// As name_of(entry) == name, without a search: every task has its entries merged.
bool is_named(std::string_view entry, std::string_view name) {
  return entry.starts_with(name) && (entry.size() == name.size() || entry[name.size()] == '=');
}

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
    "KOLO_CROSS_SIZE", "KOLO_RANKS_PER_HOST", "KOLO_RENDEZVOUS", "KOLO_SECRET_FD",
    "KOLO_CUSTODIAN_PID", "KOLO_HOSTNAME", "KOLO_WORKER", "KOLO_RANKS_BY",
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

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

Environment merge_environment(Environment base, const Environment& additions) {
  for (const auto& addition : additions) {
    const auto same = std::find_if(
        base.begin(), base.end(),
        [name = name_of(addition)](const auto& entry) { return is_named(entry, name); });
    if (same == base.end())
      base.push_back(addition);
    else
      *same = addition;
  }
  return base;
}

void add_default(Environment& environment, std::string entry) {
  const std::string_view name = name_of(entry);
  for (auto& known : environment) {
    if (!is_named(known, name)) continue;
    if (known.size() <= name.size() + 1) known = std::move(entry);
    return;
  }
  environment.push_back(std::move(entry));
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

}  // namespace kolo::exec

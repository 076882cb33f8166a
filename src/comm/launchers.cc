// A worker of an elastic job is recognised first, because it has no rank yet. Then kolo, Open MPI
// and MPICH are read; if several are present, they must agree on rank and size, since a nested
// launcher would otherwise form wrong groups without an error. Slurm comes last: inside an
// allocation its variables are set for programs of other launchers, too. Half of a rank and size
// pair is an error, because a rank that took itself to be alone would leave the others waiting.
#include "comm/launchers.h"

#include <charconv>
#include <numeric>

#include "base/errors.h"

namespace kolo::comm {
namespace {

std::optional<int> number(const Lookup& environment, const char* name) {
  auto text = environment(name);
  if (!text) return std::nullopt;
  int value = 0;
  const char* end = text->data() + text->size();
  auto [stop, error] = std::from_chars(text->data(), end, value);
  if (error != std::errc() || stop != end)
    throw_error(ErrorCode::invalid_argument, "{}='{}' is not a whole number", name, *text);
  return value;
}

/// The pair that every launcher has. Nothing if neither is set; half a pair is an error.
std::optional<Launched> rank_and_size(const Lookup& environment, Launcher launcher,
                                      const char* rank_name, const char* size_name) {
  auto rank = number(environment, rank_name);
  auto size = number(environment, size_name);
  if (!rank && !size) return std::nullopt;
  if (!rank || !size)
    throw_error(ErrorCode::invalid_argument,
                "{} is set but {} is not, so a part of the environment of {} is missing; pass both "
                "variables on, or unset the first",
                rank ? rank_name : size_name, rank ? size_name : rank_name, describe(launcher));
  if (*size < 1 || *rank < 0 || *rank >= *size)
    throw_error(ErrorCode::invalid_argument,
                "{}={} does not fit {}={}: ranks are numbered from 0 to the size minus 1",
                rank_name, *rank, size_name, *size);
  Launched launched;
  launched.launcher = launcher;
  launched.rank = *rank;
  launched.size = *size;
  return launched;
}

void read_meeting_place(const Lookup& environment, Launched& launched) {
  launched.rendezvous = environment("KOLO_RENDEZVOUS").value_or("");
  launched.secret_fd = number(environment, "KOLO_SECRET_FD").value_or(-1);
  launched.custodian_pid = number(environment, "KOLO_CUSTODIAN_PID").value_or(-1);
  const bool needed = launched.size > 1 || launched.worker >= 0;
  if (needed && (launched.rendezvous.empty() || launched.secret_fd < 0)) {
    const char* set = launched.worker >= 0 ? "KOLO_WORKER" : "KOLO_RANK";
    throw_error(ErrorCode::invalid_argument,
                "{} is set but KOLO_RENDEZVOUS or KOLO_SECRET_FD is not, so a part of the "
                "environment of kolo run is missing; pass all KOLO_* variables on, or unset {}",
                set, set);
  }
}

/// Nothing is known of its rank before the launcher has formed a group.
std::optional<Launched> read_worker(const Lookup& environment) {
  const auto worker = number(environment, "KOLO_WORKER");
  if (!worker) return std::nullopt;
  if (*worker < 0)
    throw_error(ErrorCode::invalid_argument, "KOLO_WORKER={} is not the number of a worker",
                *worker);
  Launched launched;
  launched.launcher = Launcher::kolo;
  launched.worker = *worker;
  read_meeting_place(environment, launched);
  return launched;
}

std::optional<Launched> read_kolo(const Lookup& environment) {
  // kolo run --mpi names the ranks for programs that know no MPI; they meet as MPI's ranks do.
  if (environment("KOLO_RANKS_BY") == "mpirun" && !environment("KOLO_RENDEZVOUS"))
    return std::nullopt;
  auto launched = rank_and_size(environment, Launcher::kolo, "KOLO_RANK", "KOLO_SIZE");
  if (!launched) return std::nullopt;

  const std::string hosts = environment("KOLO_RANKS_PER_HOST").value_or("");
  for (std::size_t at = 0; at < hosts.size();) {
    int count = 0;
    auto [stop, error] = std::from_chars(hosts.data() + at, hosts.data() + hosts.size(), count);
    at = static_cast<std::size_t>(stop - hosts.data());
    if (error != std::errc() || count < 1 || (at < hosts.size() && hosts[at] != ','))
      throw_error(ErrorCode::invalid_argument,
                  "KOLO_RANKS_PER_HOST='{}' is not a list of positive numbers separated by commas",
                  hosts);
    ++at;
    launched->ranks_per_host.push_back(count);
  }
  const int total =
      std::accumulate(launched->ranks_per_host.begin(), launched->ranks_per_host.end(), 0);
  if (total != launched->size)
    throw_error(ErrorCode::invalid_argument,
                "KOLO_RANKS_PER_HOST='{}' adds up to {} ranks, but KOLO_SIZE is {}", hosts, total,
                launched->size);
  launched->one_host = launched->ranks_per_host.size() == 1;
  read_meeting_place(environment, *launched);
  return launched;
}

std::optional<Launched> read_openmpi(const Lookup& environment) {
  auto launched =
      rank_and_size(environment, Launcher::openmpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  if (!launched) return std::nullopt;
  launched->one_host =
      number(environment, "OMPI_COMM_WORLD_LOCAL_SIZE").value_or(0) == launched->size;
  // A random number that mpirun draws for each job; the second part tells spawned jobs apart.
  // Version 5 has neither, but names its jobs by host and process.
  auto drawn = environment("OMPI_MCA_orte_precondition_transports");
  if (!drawn) drawn = environment("PMIX_NAMESPACE");
  if (drawn)
    launched->job =
        fmt::format("openmpi-{}-{}", *drawn, environment("OMPI_MCA_ess_base_jobid").value_or("0"));
  return launched;
}

std::optional<Launched> read_mpich(const Lookup& environment) {
  auto launched = rank_and_size(environment, Launcher::mpich, "PMI_RANK", "PMI_SIZE");
  if (!launched) return std::nullopt;
  launched->one_host = number(environment, "MPI_LOCALNRANKS").value_or(0) == launched->size;
  return launched;
}

std::optional<Launched> read_slurm(const Lookup& environment) {
  // Only a step has a rank: an sbatch script has SLURM_PROCID too, but runs once.
  auto step = environment("SLURM_STEP_ID");
  auto job = environment("SLURM_JOB_ID");
  if (!step || !job || !environment("SLURM_STEP_NUM_TASKS")) return std::nullopt;
  auto launched =
      rank_and_size(environment, Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS");
  if (!launched) return std::nullopt;
  launched->one_host = number(environment, "SLURM_STEP_NUM_NODES").value_or(0) == 1;
  launched->job =
      fmt::format("slurm-{}-{}-{}-{}", environment("SLURM_CLUSTER_NAME").value_or("cluster"), *job,
                  *step, environment("SLURM_RESTART_COUNT").value_or("0"));
  return launched;
}

}  // namespace

std::string describe(Launcher launcher) {
  switch (launcher) {
    case Launcher::none: return "alone";
    case Launcher::kolo: return "kolo run";
    case Launcher::openmpi: return "mpirun (Open MPI)";
    case Launcher::mpich: return "mpirun (MPICH)";
    case Launcher::slurm: return "srun";
  }
  return "?";
}

Launched read_launcher(const Lookup& environment) {
  if (auto worker = read_worker(environment)) return *worker;
  std::optional<Launched> found;
  for (auto read : {read_kolo, read_openmpi, read_mpich}) {
    auto launched = read(environment);
    if (!launched) continue;
    if (found && (found->rank != launched->rank || found->size != launched->size))
      throw_error(ErrorCode::invalid_argument,
                  "two launchers set the environment: rank {} of {} by {} and rank {} of {} by "
                  "{}; start the program with one of them, or unset the variables of the other",
                  found->rank, found->size, describe(found->launcher), launched->rank,
                  launched->size, describe(launched->launcher));
    if (!found) found = std::move(launched);
  }
  // The others run inside of Slurm's allocations, where its own numbers mean something else.
  auto slurm = read_slurm(environment);
  if (!found) found = slurm;
  if (!found) return {};
  if (auto job = environment("KOLO_JOB_ID"))
    found->job = *job;
  else if (found->launcher == Launcher::mpich && slurm && slurm->size == found->size)
    found->job = slurm->job;  // srun --mpi=pmi2
  return *found;
}

}  // namespace kolo::comm

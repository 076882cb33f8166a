// Who started this process, read from the environment: kolo run, mpirun, srun, or nobody.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace kolo::comm {

enum class Launcher { none, kolo, openmpi, mpich, slurm };

/// What a launcher has told this process through its environment.
struct Launched {
  Launcher launcher = Launcher::none;
  int rank = 0;
  int size = 1;
  bool one_host = true;  ///< the launcher says that all ranks are on this host

  // kolo run only
  int worker = -1;  ///< of an elastic job, whose ranks are told later (elastic/membership.h)
  std::vector<int> ranks_per_host;  ///< ranks are numbered host by host
  std::string rendezvous;           ///< ADDRESS:PORT
  int secret_fd = -1;
  int custodian_pid = -1;

  /// A name that no other job of this user has, equal on all ranks; "" if the launcher gives none.
  std::string job;
};

/// For people: "kolo run", "mpirun (Open MPI)" …
std::string describe(Launcher launcher);

/// A variable's value; unset and empty are the same.
using Lookup = std::function<std::optional<std::string>(const char* name)>;

/// Throws invalid_argument for an environment that is incomplete or contradicts itself.
/// An sbatch script outside of srun, and a program outside of all of these, is alone.
Launched read_launcher(const Lookup& environment);

}  // namespace kolo::comm

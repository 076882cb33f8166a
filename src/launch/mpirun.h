// Starting ranks with the MPI's own launcher, for `kolo run --mpi`.
#pragma once

#include <string>
#include <vector>

#include "launch/supervisor.h"

namespace kolo::launch {

enum class MpiFlavour { openmpi, mpich };

/// Which MPI the `mpirun` in PATH belongs to. Throws unsupported.
MpiFlavour find_mpirun();

/// The complete command. Variables are named in it, their values stay in the environment.
std::vector<std::string> mpirun_command(const ParallelJob& job, MpiFlavour flavour);

/// Replaces this process by mpirun, so that its output and exit status are mpirun's. Throws.
[[noreturn]] void become_mpirun(const ParallelJob& job);

}  // namespace kolo::launch

// Ranks that mpirun or srun started meet through MPI itself.
#pragma once

#include <memory>

#include "comm/bootstrap.h"

namespace kolo::comm {

std::shared_ptr<Bootstrap> make_mpi_bootstrap();

}  // namespace kolo::comm

#include "kolo/torch/threads.h"

#include <dlfcn.h>
#include <torch/torch.h>

#include <atomic>

#include "base/env.h"
#include "base/errors.h"

namespace kolo {
namespace {

/// OpenBLAS built on pthreads has a count of its own that OpenMP's does not reach. It is there when
/// the BLAS that libtorch was linked with happens to be OpenBLAS.
void set_openblas_threads(int count) {
  using Setter = void (*)(int);
  if (auto* setter = reinterpret_cast<Setter>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads")))
    setter(count);
}

std::atomic<bool> chosen{false};

}  // namespace

void set_compute_threads(int count) {
  if (count < 1)
    throw_error(ErrorCode::invalid_argument,
                "set_compute_threads: the number of threads is {}, but must be at least 1", count);
  at::set_num_threads(count);
  set_openblas_threads(count);
  chosen = true;
}

bool compute_threads_are_chosen() { return chosen || environment("OMP_NUM_THREADS").has_value(); }

}  // namespace kolo

// The number of threads with which a rank computes.
#pragma once

namespace kolo {

/// Operators of libtorch, and of the BLAS behind it, use `count` threads in this process from now
/// on. `kolo run` already gives every rank its share of the host's cores (OMP_NUM_THREADS); this is
/// for programs that are started otherwise, and for measurements. Call it before the first
/// operator, never while one runs. Throws invalid_argument unless count > 0.
void set_compute_threads(int count);

/// Whether somebody has said how many: set_compute_threads() or OMP_NUM_THREADS.
[[nodiscard]] bool compute_threads_are_chosen();

}  // namespace kolo

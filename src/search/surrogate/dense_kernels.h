// The inner loops of the Gaussian process, compiled once per instruction set and chosen at run
// time.
//
// All matrices are column-major, as Eigen's. Every number is the result of the same operations in
// the same order on every instruction set (no fused multiply-add, no width-dependent sums), so a
// study moved to another processor goes on with the same bits.
#pragma once

#include <stddef.h>

namespace kolo {
enum class InstructionSet;
}

namespace kolo::search {

struct DenseKernels {
  /// C -= A Bᵀ, where C is rows x columns, A is rows x depth and B is columns x depth.
  void (*subtract_product)(size_t rows, size_t columns, size_t depth, const double* a,
                           size_t a_stride, const double* b, size_t b_stride, double* c,
                           size_t c_stride);

  /// Turns squared distances into Matérn 5/2 covariances, in place.
  void (*matern52)(double* values, size_t count, double variance);

  /// As matern52, and writes the slope -dk/d(r²)·2 = variance·5/3·(1 + √5 r)·exp(-√5 r).
  void (*matern52_with_slope)(double* values, double* slopes, size_t count, double variance);
};

/// The copy for one of the sets that this processor can run.
const DenseKernels& dense_kernels(InstructionSet set);
/// The copy for the best of them.
const DenseKernels& dense_kernels();

namespace baseline {
extern const DenseKernels kDenseKernels;
}
namespace avx2 {
extern const DenseKernels kDenseKernels;
}
namespace avx512 {
extern const DenseKernels kDenseKernels;
}

}  // namespace kolo::search

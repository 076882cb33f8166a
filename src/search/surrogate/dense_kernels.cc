#include "search/surrogate/dense_kernels.h"

#include "base/cpu.h"

namespace kolo::search {

const DenseKernels& dense_kernels(InstructionSet set) {
#ifdef KOLO_X86_KERNELS
  if (set == InstructionSet::avx512) return avx512::kDenseKernels;
  if (set == InstructionSet::avx2) return avx2::kDenseKernels;
#endif
  (void)set;
  return baseline::kDenseKernels;
}

const DenseKernels& dense_kernels() {
  static const DenseKernels& chosen = dense_kernels(best_instruction_set());
  return chosen;
}

}  // namespace kolo::search

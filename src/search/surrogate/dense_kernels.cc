#include "search/surrogate/dense_kernels.h"

namespace kolo::search {

const DenseKernels& dense_kernels() {
#ifdef KOLO_X86_KERNELS
  static const DenseKernels& chosen = []() -> const DenseKernels& {
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl"))
      return avx512::kDenseKernels;
    if (__builtin_cpu_supports("avx2")) return avx2::kDenseKernels;
    return baseline::kDenseKernels;
  }();
  return chosen;
#else
  return baseline::kDenseKernels;
#endif
}

}  // namespace kolo::search

#include "nas/ppo/kernels.h"

namespace kolo::nas {
namespace {

enum class Isa { baseline, avx2, avx512 };

Isa best_isa() {
#ifdef KOLO_X86_KERNELS
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return Isa::avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return Isa::avx2;
#endif
  return Isa::baseline;
}

const Isa kIsa = best_isa();

}  // namespace

template <>
const Kernels<float>& kernels<float>() {
#ifdef KOLO_X86_KERNELS
  if (kIsa == Isa::avx512) return avx512::kOfFloats;
  if (kIsa == Isa::avx2) return avx2::kOfFloats;
#endif
  return baseline::kOfFloats;
}

template <>
const Kernels<double>& kernels<double>() {
#ifdef KOLO_X86_KERNELS
  if (kIsa == Isa::avx512) return avx512::kOfDoubles;
  if (kIsa == Isa::avx2) return avx2::kOfDoubles;
#endif
  return baseline::kOfDoubles;
}

}  // namespace kolo::nas

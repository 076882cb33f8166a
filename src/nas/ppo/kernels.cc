#include "nas/ppo/kernels.h"

#include "base/cpu.h"

namespace kolo::nas {

template <>
const Kernels<float>& kernels<float>(InstructionSet set) {
#ifdef KOLO_X86_KERNELS
  if (set == InstructionSet::avx512) return avx512::kOfFloats;
  if (set == InstructionSet::avx2) return avx2::kOfFloats;
#endif
  (void)set;
  return baseline::kOfFloats;
}

template <>
const Kernels<double>& kernels<double>(InstructionSet set) {
#ifdef KOLO_X86_KERNELS
  if (set == InstructionSet::avx512) return avx512::kOfDoubles;
  if (set == InstructionSet::avx2) return avx2::kOfDoubles;
#endif
  (void)set;
  return baseline::kOfDoubles;
}

template <class T>
const Kernels<T>& kernels() {
  static const Kernels<T>& chosen = kernels<T>(best_instruction_set());
  return chosen;
}
template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();

}  // namespace kolo::nas

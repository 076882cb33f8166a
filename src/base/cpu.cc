#include "base/cpu.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace kolo {
namespace {

#if defined(__x86_64__)
/// Not by __builtin_cpu_supports: Clang 14 does not know the name.
bool has_f16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

InstructionSet ask_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !has_f16c())
    return InstructionSet::baseline;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return wide ? InstructionSet::avx512 : InstructionSet::avx2;
#else
  return InstructionSet::baseline;
#endif
}

}  // namespace

const char* to_string(InstructionSet set) noexcept {
  switch (set) {
    case InstructionSet::baseline: return "baseline";
    case InstructionSet::avx2: return "avx2";
    case InstructionSet::avx512: return "avx512";
  }
  return "?";
}

std::vector<InstructionSet> usable_instruction_sets() {
  std::vector<InstructionSet> sets;
  for (auto set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512})
    if (set <= best_instruction_set()) sets.push_back(set);
  return sets;
}

InstructionSet best_instruction_set() {
  static const InstructionSet best = ask_processor();
  return best;
}

}  // namespace kolo

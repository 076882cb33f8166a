// Which of the copies of an inner loop, one for each instruction set, this processor can run.
//
// A module compiles such a loop three times, in the namespaces `baseline`, `avx2` and `avx512`, and
// offers a function that gives the copy for an InstructionSet. Other processors than x86-64 have
// the baseline alone.
#pragma once

#include <vector>

namespace kolo {

enum class InstructionSet {
  baseline,  ///< what every processor of the architecture has
  avx2,      ///< AVX2, FMA and F16C
  avx512,    ///< and AVX-512 F, BW, DQ and VL
};

const char* to_string(InstructionSet set) noexcept;

/// All that this processor can run, the slowest first.
std::vector<InstructionSet> usable_instruction_sets();

/// The last of them; asks the processor once.
InstructionSet best_instruction_set();

}  // namespace kolo

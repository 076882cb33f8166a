// What the per-instruction-set copies of the reduction loops offer to reduce(). Plain data only:
// see reduce_kernels_impl.h for why.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace kolo {
enum class InstructionSet;
}

namespace kolo::comm {

struct ReduceScale {
  double before = 1.0;        // prescale
  double after = 1.0;         // postscale / divisor, for floating-point types
  double after_factor = 1.0;  // postscale alone, for integers
  int64_t divisor = 1;
};

struct ReduceCall {
  const void* const* inputs = nullptr;
  size_t input_count = 0;
  void* const* outputs = nullptr;
  size_t output_count = 0;
  size_t count = 0;
  bool scaled = false;
  ReduceScale scale;
};

using ReduceLoop = void (*)(const ReduceCall&);

struct ReduceOps {
  ReduceLoop sum, min, max, product;
};

struct ReduceTable {
  ReduceOps same[10];  // by DataType
  ReduceOps half_to_float, brain_to_float, float_to_half, float_to_brain;
};

/// The copy for one of the sets that this processor can run.
const ReduceTable& reduce_table(InstructionSet set);

namespace baseline {
extern const ReduceTable kReduceTable;
}
namespace avx2 {
extern const ReduceTable kReduceTable;
}
namespace avx512 {
extern const ReduceTable kReduceTable;
}

}  // namespace kolo::comm

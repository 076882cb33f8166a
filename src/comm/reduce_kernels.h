// The arithmetic of reductions on plain memory.
//
// For each element i:   out[i] = (pre·in₀[i] ⊕ pre·in₁[i] ⊕ …) · post / divisor   in the order of
// the inputs, so the bits depend on nothing but the inputs and their order: not on the algorithm
// that calls, nor on the instruction set (no fused multiply-add is generated). 16-bit floats are
// accumulated in float32 and rounded once, to nearest even. Integers are scaled in float64 and
// truncated toward zero. Booleans: sum and max are "any", product and min are "all". min and max
// return NaN when any input is NaN.
#pragma once

#include <cstddef>
#include <span>

#include "comm/group.h"
#include "kolo/types.h"

namespace kolo::comm {

/// Inputs hold `in_type`, outputs `out_type` elements. The two are equal, or one is float32 and the
/// other a 16-bit float (partial results between hosts). Outputs may be the same memory as inputs
/// of the same type (exactly, not shifted); every output receives the same values.
/// how.type is ignored in favour of in_type/out_type.
void reduce(std::span<const void* const> inputs, DataType in_type, std::span<void* const> outputs,
            DataType out_type, std::size_t count, const Reduction& how);

/// As above with one type.
void reduce(std::span<const void* const> inputs, std::span<void* const> outputs, std::size_t count,
            const Reduction& how);

/// Copies that do not pollute the caches when they are large.
void copy_bytes(void* to, const void* from, std::size_t bytes);

}  // namespace kolo::comm

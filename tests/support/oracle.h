// What reductions must give, computed slowly and precisely.
//
// Integers and booleans are exact (sums and products wrap as two's complement). Floats are computed
// in long double and compared with the error that the promised arithmetic may make: each of n
// additions and two scalings rounds once in the type, or in float32 for the 16-bit types, which are
// then rounded once more.
#pragma once

#include <gtest/gtest.h>

#include <span>

#include "kolo/communicator.h"
#include "support/values.h"

namespace kolo::test {

/// Whether the library promises this operation for this type.
bool is_supported(DataType type, ReduceOp op);

/// Values that suit an operation: no overflow where overflow has no defined answer.
Range range_for(DataType type, ReduceOp op);

/// `result` against elements [first, first + result's) of the reduction of `inputs`, rank order.
/// Not for adasum.
testing::AssertionResult is_reduction(const Bytes& result, std::span<const Bytes> inputs,
                                      DataType type, ReduceOp op, Scaling scaling = {},
                                      std::size_t first = 0);

/// Adasum over whole tensors: pairs (0,1), (2,3) …, then pairs of the results; an odd one passes
/// up. a ⊕ b = (1 − ⟨a,b⟩/2|a|²)·a + (1 − ⟨a,b⟩/2|b|²)·b, with factor 1 for a tiny norm.
testing::AssertionResult is_adasum(const Bytes& result, std::span<const Bytes> inputs,
                                   DataType type, Scaling scaling = {});

/// All elements equal, bit by bit; says where not.
testing::AssertionResult same_bytes(const Bytes& a, const Bytes& b);

}  // namespace kolo::test

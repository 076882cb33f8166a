// Adasum: a reduction that adds gradients where they are orthogonal and averages them where they
// are parallel. Maleki et al., "Scaling Distributed Training with Adaptive Summation", MLSys 2021.
//
// Pairwise:  a ⊕ b = a·(1 − ⟨a,b⟩ / 2|a|²) + b·(1 − ⟨a,b⟩ / 2|b|²)
// (a coefficient is 1 where the squared norm is below √DBL_MIN). The ranks' vectors are combined in
// a binary tree: neighbours first, then neighbours of the results; an odd one out moves up as it
// is, so any number of ranks works.
//
// Here the vectors are transposed first: each rank gets its slice of everybody's vector (alltoall),
// walks the tree on its slice, with the dot products summed over the ranks at each level (one small
// exchange), and the slices are gathered. Arithmetic in float64.
// Cost, n ranks, N elements: 2·(n−1)/n·N elements sent per rank, ⌈log₂ n⌉ exchanges, 8·N bytes.
#pragma once

#include <cstddef>

#include "comm/group.h"
#include "kolo/communicator.h"

namespace kolo::comm {

/// After a meeting that agreed on all arguments. input == output is allowed.
void adasum(Group& group, const void* input, void* output, std::size_t count, DataType type,
            const Scaling& scaling);

}  // namespace kolo::comm

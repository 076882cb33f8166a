// Allreduce whose bits do not depend on who brings what: the sum of blocks in the order of a tree
// (tree_order.h), in place. `blocks` are this rank's, block_stride() apart, in memory that the
// communicator allocated; the result, times `postscale`, comes where the first was, and the others
// are undefined afterwards.
#pragma once

#include <cstddef>

#include "comm/tree_order.h"
#include "kolo/communicator.h"

namespace kolo::comm {

/// Collective. The order must be the same on every rank, else all throw invalid_argument.
void tree_allreduce(Communicator& communicator, void* blocks, std::size_t count, DataType type,
                    double postscale, const TreeOrder& order);

/// Its card, not signed yet, and what it means to a Group.
[[nodiscard]] Card tree_card(void* blocks, std::size_t count, DataType type, double postscale);
[[nodiscard]] Reduction tree_reduction(DataType type, double postscale, const TreeOrder& order);

}  // namespace kolo::comm

// What every reduction shows to the other ranks, and what it means to a Group.
#pragma once

#include <cstddef>

#include "comm/group.h"
#include "kolo/communicator.h"

namespace kolo::comm {

/// Not signed yet: sign() comes when the card is whole.
Card reduction_card(OpKind kind, const void* input, void* output, std::size_t count, DataType type,
                    ReduceOp op, Scaling scaling);

/// `op` is not adasum. An average is a sum that is divided by the number of ranks.
Reduction reduction_of(DataType type, ReduceOp op, Scaling scaling, int ranks);

}  // namespace kolo::comm

// The kinds of the built-in operations, gathered into a table by operations.cc. Each family is a
// file: dense, convolution, pooling, sequence, merge, shape.
#pragma once

#include "kolo/nas/operations.h"

namespace kolo::nas::kinds {

// What the graph itself understands: they make no layer.
extern const OperationKind identity, zero, connect;

extern const OperationKind tensor, flatten, reshape, activation, dropout, batch_normalization;
extern const OperationKind dense;
extern const OperationKind conv1d, conv2d, separable_conv2d;
extern const OperationKind max_pooling1d, max_pooling2d, average_pooling1d, average_pooling2d,
    global_average_pooling;
extern const OperationKind lstm, embedding;
extern const OperationKind concatenate, add_by_padding, add_by_projecting;

}  // namespace kolo::nas::kinds

namespace kolo::nas {

/// Number of elements of one sample.
std::int64_t elements(const Shape& shape);

/// Throws invalid_argument ("needs channels x height x width, got (10)") unless it has so many
/// dimensions. `meaning` names them.
void need_rank(const Shape& shape, std::size_t rank, std::string_view meaning);

/// The kind of an operation. Throws not_found.
const OperationKind& kind_of(const Operation& operation);

}  // namespace kolo::nas

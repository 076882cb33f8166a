// Checks the data of a problem and brings it into the form that training needs.
#pragma once

#include <vector>

#include "kolo/nas/problem.h"

namespace kolo::nas {

/// Real targets without a second dimension get one; numbers become float32, classes int64; all
/// contiguous. Throws invalid_argument, naming the part and the tensor.
DataSplit checked_data(DataSplit data);

[[nodiscard]] bool targets_are_real(const Samples& samples);

/// Of one sample. Classes 0 … C-1 are answered by C scores.
std::vector<Shape> input_shapes_of(const DataSplit& data);
std::vector<Shape> output_shapes_of(const DataSplit& data);

}  // namespace kolo::nas

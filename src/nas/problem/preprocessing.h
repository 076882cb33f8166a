// Scalings of data by name. What they need to know is learned from the training part only.
#pragma once

#include <string_view>

#include "base/registry.h"
#include "kolo/nas/problem.h"

namespace kolo::nas {

using NamedPreprocessing = DataSplit (*)(DataSplit data);

/// none, minmaxscaler, stdscaler, minmaxstdscaler: number by number (column by column), inputs and
/// real targets alike; classes stay as they are.
extern const Registry<NamedPreprocessing> kPreprocessings;

}  // namespace kolo::nas

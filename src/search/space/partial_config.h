// Reads configurations that users wrote, whole or in part.
#pragma once

#include <span>

#include "search/space/tree.h"

namespace kolo::search {

/// The entries of the values given; not-a-number where there is none.
/// Throws invalid_argument naming the path and the rule for anything that does not fit the space.
Point entries_of_config(const Node& root, std::span<const Parameter> parameters,
                        const Value& config);

}  // namespace kolo::search

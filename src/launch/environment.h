// The environment that ranks run in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "exec/environment.h"
#include "launch/hosts.h"

namespace kolo::launch {

using exec::Environment;
using exec::merge_environment;

/// NAME or NAME=VALUE as given to -x; NAME alone takes the value from `environment`.
/// Throws invalid_argument.
std::string resolve_variable(std::string_view text, const Environment& environment);

/// KOLO_RANK and so on, for each rank of `placement`.
Environment rank_variables(const std::vector<Placement>& placements, const Placement& placement,
                           int local_rank, const std::string& rendezvous);

/// For ranks with so many virtual ranks. The number of threads changes bits, so it must not follow
/// from the number of ranks.
Environment virtual_rank_variables(int count);

}  // namespace kolo::launch

// Which processors the ranks of a host may use.
#pragma once

#include <sched.h>

#include <optional>
#include <string_view>
#include <vector>

#include "exec/task.h"

namespace kolo::exec {

/// Throws invalid_argument, listing the known names.
BindTo parse_bind_to(std::string_view name);

/// Processors that this process may use.
int usable_processors();

/// Their numbers, from the lowest.
std::vector<int> usable_processor_numbers();

/// How many threads suit a rank: as many as its own processors, or its share of the host's, at
/// least one.
int threads_for_rank(const std::optional<cpu_set_t>& bound_to, int ranks_here);

/// The processors of each rank of this host, or nothing for BindTo::none. Rank i gets core (or
/// socket) i of those that this process may use, starting over when there are more ranks.
/// Throws unsupported if the machine does not tell its topology.
std::vector<cpu_set_t> processors_for_ranks(BindTo bind_to, int ranks);

}  // namespace kolo::exec

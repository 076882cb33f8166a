// The hosts of a Slurm allocation.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "launch/hosts.h"

namespace kolo::launch {

/// "2(x3),1" → 2 2 2 1, as in SLURM_TASKS_PER_NODE. Throws invalid_argument.
std::vector<int> parse_slurm_counts(std::string_view text);

/// The hosts that this process's allocation has, with as many slots as tasks (or processors, if
/// tasks were not asked for); nothing outside of one. Asks scontrol.
/// Throws unavailable if that cannot be had; -H then says it instead.
std::optional<std::vector<Host>> slurm_hosts();

}  // namespace kolo::launch

// The environment that tasks run in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo::exec {

/// NAME=VALUE entries.
using Environment = std::vector<std::string>;

/// The NAME of an entry.
std::string_view name_of(std::string_view entry);

/// `additions` replace entries of the same name.
Environment merge_environment(Environment base, const Environment& additions);

/// Adds an entry unless its name has a value already; an empty one does not count.
void add_default(Environment& environment, std::string entry);

/// Without the variables by which a launcher tells a process its rank: they are of the launcher's
/// own place, if it is itself a rank of something, and would contradict ours.
Environment without_launcher_variables(const Environment& environment);

/// What is carried to other hosts: all but what belongs to this host or this login.
Environment forwardable(const Environment& environment);

}  // namespace kolo::exec

// The nodes that a batch system has given this process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "launch/hosts.h"

namespace kolo::launch {

struct Allocation {
  std::string system;       ///< "slurm", "pbs" …
  std::string job;          ///< the batch system's number
  std::vector<Host> hosts;  ///< each once; slots = how often it was named
};

/// Nothing outside of one. Throws unavailable if there is one whose nodes cannot be told.
std::optional<Allocation> find_allocation();

/// The same for a program that wants all of it: nothing in a step or a job of a launcher either,
/// which have a part of the allocation, and nothing if it is a single node.
std::optional<Allocation> find_whole_allocation();

/// What runs a custodian on a node, from inside an allocation of this system ("here" = all nodes
/// are this machine, "" = there is none): srun, or ssh. Empty for this machine itself.
std::vector<std::string> custodian_command(const std::string& system, const std::string& node,
                                           const std::string& kolo);

/// A file with a host per line, as PBS and Cobalt write it; also "host slots …" of Grid Engine.
std::vector<Host> parse_nodefile(std::string_view text);

}  // namespace kolo::launch

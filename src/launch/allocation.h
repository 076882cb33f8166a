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

/// A file with a host per line, as PBS and Cobalt write it; also "host slots …" of Grid Engine.
std::vector<Host> parse_nodefile(std::string_view text);

}  // namespace kolo::launch

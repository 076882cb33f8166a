// One check for each collective operation.
#pragma once

#include <kolo/kolo.h>

#include <span>

namespace collectives {

struct Check {
  const char* name;
  const char* summary;
  /// Collective over the communicator; whether this rank's result was right.
  bool (*run)(kolo::Communicator& world);
};

std::span<const Check> checks();

}  // namespace collectives

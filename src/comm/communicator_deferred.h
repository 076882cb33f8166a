// What a Communicator remembers of an operation that was begun and is not done.
#pragma once

#include <cstddef>
#include <vector>

#include "comm/group.h"

namespace kolo::comm {

struct Deferred {
  enum class Kind { none, meeting, allreduce };
  Kind kind = Kind::none;
  std::size_t bytes = 0;  ///< of what is shown at a meeting
  std::size_t count = 0;
  Reduction how;
  std::vector<const void*> shown;  ///< by rank, after a meeting
};

}  // namespace kolo::comm

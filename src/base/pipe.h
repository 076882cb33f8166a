// A pipe whose two ends are owned.
#pragma once

#include "base/fd.h"

namespace kolo {

struct Pipe {
  Fd read, write;
};

/// Both ends block and are closed in programs that this process starts. Throws io.
Pipe make_pipe();

}  // namespace kolo

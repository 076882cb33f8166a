// A pipe whose two ends are owned.
#pragma once

#include <string_view>

#include "base/fd.h"

namespace kolo {

struct Pipe {
  Fd read, write;
};

/// Both ends block and are closed in programs that this process starts. Throws io.
Pipe make_pipe();

/// As write(2), but when the reader is gone there is EPIPE and never a SIGPIPE, which would end a
/// program that does not expect it. What the program does with that signal stays its own affair.
long write_to_pipe(int fd, std::string_view data);

}  // namespace kolo

#include "base/pipe.h"

#include <fcntl.h>

#include "base/errors.h"

namespace kolo {

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

}  // namespace kolo

#include "base/pipe.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "base/errors.h"

namespace kolo {

Pipe make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw_errno("cannot create a pipe");
  return {Fd(ends[0]), Fd(ends[1])};
}

long write_to_pipe(int fd, std::string_view data) {
  // The signal comes to the thread that writes: it is kept away meanwhile, and taken if it came.
  sigset_t broken, before, waiting;
  ::sigemptyset(&broken);
  ::sigaddset(&broken, SIGPIPE);
  ::sigemptyset(&waiting);
  ::sigpending(&waiting);
  ::pthread_sigmask(SIG_BLOCK, &broken, &before);
  const ssize_t written = ::write(fd, data.data(), data.size());
  const int error = errno;
  if (written < 0 && error == EPIPE && ::sigismember(&waiting, SIGPIPE) == 0) {
    constexpr timespec kAtOnce{};
    while (::sigtimedwait(&broken, nullptr, &kAtOnce) < 0 && errno == EINTR) {
    }
  }
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error;
  return written;
}

}  // namespace kolo

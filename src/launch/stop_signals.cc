#include "launch/stop_signals.h"

#include <signal.h>
#include <sys/signalfd.h>

#include "base/errors.h"

namespace kolo::launch {

Fd stop_signals() {
  sigset_t set;
  ::sigemptyset(&set);
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) {
    // Under nohup, or in the background of a script, somebody wants it ignored.
    struct sigaction now {};
    ::sigaction(signal, nullptr, &now);
    if (now.sa_handler != SIG_IGN) ::sigaddset(&set, signal);
  }
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // a parent that ignored it would cost us ssh's statuses
  Fd fd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd.valid()) throw_errno("cannot create a signalfd");
  return fd;
}

}  // namespace kolo::launch

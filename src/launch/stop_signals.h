// The signals that end a launcher.
#pragma once

#include "base/fd.h"

namespace kolo::launch {

/// Readable (signalfd_siginfo) when SIGINT, SIGTERM or SIGHUP has come; these no longer end the
/// process. One that is ignored stays so.
Fd stop_signals();

}  // namespace kolo::launch

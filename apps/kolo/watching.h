// What commands that run for long share: interrupts, and what is shown meanwhile.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "tune/output/observer.h"

namespace kolo::app {

/// From now on SIGINT, SIGTERM and SIGHUP set the flag instead of ending the process; the second
/// one ends it at once (whoever keeps its children ends them). Waits end soon then
/// (base/interrupt.h).
const std::atomic<bool>* catch_interrupts();

/// JSON events, nothing, a live table on a terminal, or a line now and then in a pipe.
std::vector<std::shared_ptr<tune::Observer>> observers_for(bool json, bool quiet);

}  // namespace kolo::app

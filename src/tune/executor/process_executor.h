// Trials as programs: tasks of a custodian that talk to the study over sockets.
#pragma once

#include <memory>

#include "tune/executor/executors.h"

namespace kolo::tune {

/// Each trial is so many ranks of this machine; 0 = one process that is no rank of anything.
/// Programs that have not said that they listen get SIGTERM when they shall stop.
std::unique_ptr<TrialExecutor> make_process_executor(ExecutorSetup setup, int ranks);

}  // namespace kolo::tune

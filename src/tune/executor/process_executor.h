// Trials as programs: tasks of custodians, here and on other hosts. Those here talk to the study
// over sockets, those elsewhere report through files in their directories.
#pragma once

#include <memory>

#include "tune/executor/executors.h"

namespace kolo::tune {

/// Each trial is a ring of ranks of setup.shape, or one process that is no rank of anything.
/// Programs that have not said that they listen get SIGTERM when they shall stop.
std::unique_ptr<TrialExecutor> make_process_executor(ExecutorSetup setup, bool is_ring);

}  // namespace kolo::tune

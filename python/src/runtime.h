// The default Context and Engine, as Python uses them.
#pragma once

#include "kolo/engine.h"

namespace kolo::python {

/// Throws failed_precondition before init(), and in a fork of the process that called
/// it: threads and connections of the engine do not exist there.
void check_running();
/// The engine, after check_running().
Engine& running_engine();

}  // namespace kolo::python

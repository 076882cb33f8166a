// A dashboard that another command serves while it runs.
#pragma once

#include <atomic>
#include <memory>

#include "dashboard/dashboard.h"
#include "kolo/tune/options.h"

namespace kolo::app {

/// Shows the studies in the storage of this one, on the usual port or, if that is taken, on a free
/// one.
[[nodiscard]] std::unique_ptr<dashboard::Dashboard> dashboard_beside(const tune::Options& study);

/// Until Ctrl-C or SIGTERM, which catch_interrupts() has been told to watch for.
void serve_until(const std::atomic<bool>& interrupted);

}  // namespace kolo::app

// A dashboard that another command serves while it runs.
#pragma once

#include <memory>

#include "dashboard/dashboard.h"
#include "kolo/tune/options.h"

namespace kolo::app {

/// Shows the studies in the storage of this one, on the usual port or, if that is taken, on a free
/// one.
[[nodiscard]] std::unique_ptr<dashboard::Dashboard> dashboard_beside(const tune::Options& study);

}  // namespace kolo::app

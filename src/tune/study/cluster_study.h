// Studies whose trials run on a cluster (src/cluster).
#pragma once

#include <string>

#include "exec/ledger.h"
#include "kolo/tune/options.h"
#include "tune/executor/executors.h"

namespace kolo::tune {

/// What each of the ranks of a trial reserves. Throws invalid_argument for GPUs that cannot be
/// divided among them.
exec::Amounts amounts_of_rank(const Resources& trial, int ranks, int threads_per_rank);

/// Lets trials of this shape run on the cluster Options::cluster: fills in its hosts, and how many
/// trials fit at once unless Options::total_resources says it. Throws not_found, unavailable, and
/// invalid_argument for a trial that does not fit.
void use_cluster(Options& options, const Resources& per_trial, TrialShape& shape);

}  // namespace kolo::tune

// What makes a job of `kolo run` elastic.
#pragma once

#include <vector>

#include "cli/option_set.h"
#include "launch/elastic/elastic_supervisor.h"
#include "run_options.h"

namespace kolo::app {

/// Throws invalid_argument for options that mean nothing in a job that is not.
bool is_elastic(const RunOptions& options, const cli::OptionSet& given);

/// `hosts` is empty if a script tells them. Throws invalid_argument for numbers that contradict
/// each other.
launch::elastic::ElasticJob elastic_job_of(const RunOptions& options, launch::ParallelJob job,
                                           std::vector<launch::Host> hosts);

}  // namespace kolo::app

// Why a job does not run.
#pragma once

#include <string>
#include <vector>

#include "kolo/jobs.h"

namespace kolo::jobs {

/// Lines for people, the most important first. Throws not_found.
std::vector<std::string> explain(JobDatabase& jobs, JobId id);

}  // namespace kolo::jobs

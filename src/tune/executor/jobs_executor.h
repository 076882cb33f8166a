// Trials as jobs in a database, run by whatever launchers work on it.
//
// Each trial is a job `task<number>` of the study's workflow. It reports when it has ended: by the
// last line of its output, or by the file result.json in its directory. A study that is resumed
// finds the jobs of its trials again by what it wrote into their data and does not create them
// twice.
#pragma once

#include <memory>
#include <string>

#include "tune/executor/executors.h"

namespace kolo::tune {

/// The database of KOLO_DB, and the workflow of KOLO_JOB_ID or else `otherwise`. Throws
/// failed_precondition when there is none.
JobsPlace find_jobs_place(const std::string& otherwise);

/// Uses setup.jobs, or find_jobs_place() of the study's name.
std::unique_ptr<TrialExecutor> make_jobs_executor(ExecutorSetup setup);

}  // namespace kolo::tune

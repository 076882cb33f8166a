// Trials as jobs in a database, run by whatever launchers work on it, here or elsewhere.
//
// Each trial is a job `task<number>` of the study's workflow. It runs where the study may not be
// reachable and may outlive it, so it reports through a file in its directory ($KOLO_TRIAL_REPORTS,
// which `kolo report` and sessions append to), and nobody answers: a trial that shall stop or pause
// is killed, and its checkpoints are what it has reported. Its standard output and error go to
// files in its directory, too. Those directories must be on a file system that all nodes share.
//
// A study that is resumed finds the jobs of its trials again by what it wrote into their data, and
// takes over what they have reported meanwhile. No trial is created twice.
#pragma once

#include <memory>
#include <string>

#include "tune/executor/executors.h"

namespace kolo::tune {

/// The database of KOLO_DB, and the workflow of KOLO_JOB_ID or else `otherwise`. Throws
/// failed_precondition when there is none.
JobsPlace find_jobs_place(const std::string& otherwise);

std::unique_ptr<TrialExecutor> make_jobs_executor(ExecutorSetup setup);

}  // namespace kolo::tune

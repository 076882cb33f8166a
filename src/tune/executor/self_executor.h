// Trials that are this program, started again with the same arguments up to the same call of
// tune::run. docs/tune.md tells users what that asks of their program.
#pragma once

#include <memory>

#include "kolo/tune/trainable.h"
#include "tune/executor/executors.h"
#include "tune/executor/self_calls.h"

namespace kolo::tune {

/// In a process that was started as a trial of this call: runs the trial and ends the process.
/// Elsewhere it returns.
void run_if_trial(const Runnable& trainable, const ClassPolicy& policy);

/// In a process that was started as a trial: runs the trainable, which reports to the study, and
/// ends the process.
[[noreturn]] void run_as_trial(const Runnable& trainable, const ClassPolicy& policy = {});

/// An executor whose trials are processes of this program, or as many ranks as setup.trainable
/// says; jobs or not.
std::unique_ptr<TrialExecutor> make_self_executor(bool as_jobs, ExecutorSetup setup,
                                                  const SelfCall& call);

}  // namespace kolo::tune

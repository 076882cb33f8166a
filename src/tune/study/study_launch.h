// Parts of starting a study that the library and the command line share.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kolo/tune/options.h"
#include "kolo/tune/trainable.h"
#include "store/study_store.h"
#include "tune/executor/executor.h"
#include "tune/executor/self_calls.h"
#include "tune/output/observer.h"
#include "tune/study/study_spec.h"

namespace kolo::tune {

std::filesystem::path results_directory(const Options& options);
std::string storage_url(const Options& options);

/// The study of options.name (which it gets, if it has none), made or found as options.resume says.
/// `makes_directories`: of a new one the directory is made first, so that nothing is begun where
/// nothing can be written.
store::StudyRecord open_study(store::StudyStore& store, Options& options, const StudySpec& spec,
                              bool makes_directories = true);

/// In a process that was started as a trial of this study: runs it and ends the process.
void run_if_trial(const Runnable& trainable, const Options& options, const ClassPolicy& policy);

/// In a process that was started as a trial: runs the trainable, which reports to the study, and
/// ends the process.
[[noreturn]] void run_as_trial(const Runnable& trainable, const ClassPolicy& policy = {});

/// Trials are this program, started again.
std::unique_ptr<TrialExecutor> make_self_executor(std::shared_ptr<Inbox> inbox,
                                                  const Runnable& trainable, const SelfCall& call,
                                                  const std::filesystem::path& study_directory);

/// What is drawn on the terminal, as options.verbose wants it.
std::vector<std::shared_ptr<Observer>> default_observers(const Options& options);

}  // namespace kolo::tune

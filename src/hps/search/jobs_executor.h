// Evaluations as jobs in a database, run by whatever launchers work on it.
//
// Each evaluation is a job `task<number>` of the search's workflow. A search that is resumed finds
// the jobs of its evaluations again by what it wrote into their data and does not create them
// twice.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "hps/search/search_plan.h"
#include "tune/executor/executor.h"

namespace kolo::hps {

struct JobsSetup {
  std::filesystem::path database;  ///< folder
  std::string workflow;
  std::string search;  ///< of which the jobs are: the same after a resume, and no other's
  EvaluatorOptions evaluator;
  std::vector<std::string> command;
  bool is_users_program = false;
  std::string metric = "objective";
  std::string envscript{};
  /// How long each call waits for a busy database. What fails is tried again.
  std::chrono::milliseconds patience = std::chrono::seconds(5);
};

/// The database of KOLO_DB, and the workflow of KOLO_JOB_ID or else `otherwise`. Throws
/// failed_precondition when there is none.
struct JobsPlace {
  std::filesystem::path database;
  std::string workflow;
  int search_nodes = 1;     ///< of the job that the search itself is
  std::string envscript{};  ///< of its application: evaluations need it too
};
JobsPlace find_jobs_place(const std::string& otherwise);

std::unique_ptr<tune::TrialExecutor> make_jobs_executor(std::shared_ptr<tune::Inbox> inbox,
                                                        JobsSetup setup);

}  // namespace kolo::hps

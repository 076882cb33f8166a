// What is run for a job: argument list, environment, folder.
#pragma once

#include <string>
#include <vector>

#include "exec/task.h"
#include "jobs/pilot/nodes.h"
#include "kolo/jobs.h"

namespace kolo::jobs {

/// What tasks learn about the launcher they run under.
struct LauncherFacts {
  std::string database;  ///< folder
  int nodes = 1;
  JobMode mode = JobMode::mixed;
  std::string runner = "kolo";  ///< of several ranks; see launch/runners.h
  std::chrono::milliseconds grace{10'000};
};

/// A task without a program yet, whose output goes to the file `log` in its directory.
exec::Task task_in(const std::string& directory, const std::string& log,
                   const LauncherFacts& facts);

/// The application itself, on the nodes it was given. `hosts` are their names for the runner.
exec::Task run_task(const Job& job, const Application& application, const std::string& directory,
                    const std::vector<Place>& places, const std::vector<std::string>& hosts,
                    const LauncherFacts& facts);

enum class Occasion { normal, error, timeout };
/// Its preprocess or postprocess script.
exec::Task hook_task(const Job& job, const std::string& command, const std::string& log,
                     const std::string& directory, Occasion occasion, const LauncherFacts& facts);

/// Whether the application is started by a runner instead of directly.
bool needs_runner(const Job& job);

}  // namespace kolo::jobs

// What is run for a job: argument list, environment, folder.
#pragma once

#include <string>
#include <vector>

#include "jobs/pilot/nodes.h"
#include "jobs/worker_protocol.h"
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

/// The application itself, on the nodes it was given. `hosts` are their names for the runner.
StartTask run_task(const Job& job, const Application& application, const std::string& directory,
                   const std::vector<Place>& places, const std::vector<std::string>& hosts,
                   const LauncherFacts& facts);

enum class Occasion { normal, error, timeout };
/// Its preprocess or postprocess script.
StartTask hook_task(const Job& job, const std::string& command, const std::string& log,
                    const std::string& directory, Occasion occasion, const LauncherFacts& facts);

/// Whether the application is started by a runner instead of directly.
bool needs_runner(const Job& job);

}  // namespace kolo::jobs

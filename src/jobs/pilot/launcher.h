// The pilot: takes jobs out of the database and runs them on the nodes it has, until its time is
// over or nothing is left to do.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "exec/link.h"
#include "jobs/pilot/nodes.h"
#include "kolo/jobs.h"

namespace kolo::jobs {

/// A node and the way to it.
struct LauncherNode {
  std::string name;
  std::string host;                  ///< as runners call it
  std::vector<std::string> command;  ///< that runs a custodian there; empty = on this machine
  /// Or a link to one that has answered; called once.
  std::function<std::unique_ptr<exec::Link>()> take_link{};
  int cores = 0;  ///< 0 = as many as the custodian finds
  int gpus = 0;
  bool forward_environment = false;  ///< the way to it does not carry this one's
};

struct LauncherOptions {
  std::vector<LauncherNode> nodes;
  std::string kolo = "kolo";  ///< this program
  JobMode mode = JobMode::mixed;
  std::string runner = "kolo";
  std::string workflow{};  ///< name or pattern; only such jobs
  std::optional<std::chrono::seconds> time_limit{};
  double lease_seconds = 60;
  /// Waits so long, after its last task, for a database that does not answer.
  std::chrono::seconds database_patience{3600};
  double idle_seconds = 10;                 ///< leaves when it has had nothing to do for so long
  bool persistent = false;                  ///< never leaves for that
  std::chrono::milliseconds grace{10'000};  ///< between SIGTERM and SIGKILL
  std::chrono::seconds hook_limit{300};
  int hooks_at_once = 5;
  std::chrono::seconds start_timeout{60};  ///< for the custodians to answer
};

struct LauncherSummary {
  std::int64_t finished = 0, failed = 0, runs = 0;
  std::int64_t left = 0;   ///< jobs that wait, and that no launcher at work can run
  std::string obstacle{};  ///< what keeps the first of them
};

/// Returns when its time is over, it was told to end (by a signal), or had nothing to do. No
/// other thread may handle signals. Throws when no node answers or the database is broken, when the
/// database's folder is gone, and when the database does not answer for longer than
/// `database_patience`; told to end, it gives the database a few seconds. `cancelled`: it was told
/// to end before it had begun.
LauncherSummary run_launcher(JobDatabase& jobs, const LauncherOptions& options);

}  // namespace kolo::jobs

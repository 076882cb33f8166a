// Launchers in the queue of a batch system.
#pragma once

#include <string>
#include <vector>

#include "kolo/jobs.h"
#include "launch/batch/batch_system.h"

namespace kolo::jobs {

struct QueuedLaunch {
  std::int64_t id = 0;
  std::string scheduler;       ///< a name of launch::batch_systems()
  std::string scheduler_id{};  ///< its number for the job; "" = not submitted
  std::string state;  ///< pending-submission, submitted, queued, running, finished, unknown
  double created = 0;
  std::string about{};   ///< JSON: nodes, minutes, queue, project …
  std::string reason{};  ///< why it waits, where the batch system tells
};

struct LaunchRequest {
  launch::BatchRequest batch;
  std::string job_mode = "mixed";
  std::string workflow{};
  std::string kolo;  ///< this program
  std::vector<std::string> launcher_options{};
  std::vector<JobId> jobs{};  ///< added for it alone: removed if it cannot be submitted
};

/// The script: the folder's job-template.sh if there is one, else the system's own template. `name`
/// is that of its log and of its claim: "qlaunch7".
std::string launch_script(JobDatabase& jobs, const launch::BatchSystem& system,
                          const LaunchRequest& request, const std::string& name);

/// Writes qsubmit/qlaunchID.sh and submits it. The entry is made before, so that a launch is known
/// whatever the batch system answers. Throws unavailable with what it answered; no launcher runs
/// then, even if it has taken the job without saying so. Where that cannot be promised, the message
/// says so.
QueuedLaunch submit_launch(JobDatabase& jobs, launch::BatchSystem& system,
                           const LaunchRequest& request);

/// All of them; with `ask`, those not finished are asked about. What the batch system could not
/// answer is in `trouble`.
std::vector<QueuedLaunch> queued_launches(JobDatabase& jobs, bool ask, std::string& trouble);

/// Takes launches that have not finished out of their queues, or ends them; `ids` empty = all.
/// Returns how many there were. Throws not_found for an id that is none of them, unavailable with
/// what the batch system answered.
std::int64_t cancel_launches(JobDatabase& jobs, const std::vector<std::int64_t>& ids);

}  // namespace kolo::jobs

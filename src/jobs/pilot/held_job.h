// A job that a launcher holds the lease of, and what it knows of it beyond the database.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jobs/database/changes.h"
#include "jobs/pilot/nodes.h"
#include "jobs/pilot/task_host.h"

namespace kolo::jobs {

/// What is being done for a job now.
enum class Phase {
  waiting,  ///< nothing: it waits for its turn
  staging_in,
  preprocess,
  running,
  judging,  ///< its run was ended by SIGTERM, and it is not yet known whose that was
  postprocess,
  staging_out,
  handler,  ///< the postprocess script, called for an error or a timeout
  ended     ///< the job is over, or given back, as soon as that is written
};

/// How a run ended: the status as from waitpid, or none if it could not be started.
struct RunEnd {
  std::optional<int> status;
  std::string text;  ///< the end of its output, or why it could not be started
};

/// A write of which nobody knows whether it took place, because the server went away before it
/// answered. It is repeated as it was, which Leases::write can tell from one that came too late.
/// What has happened since is written after it.
struct UnconfirmedWrite {
  std::size_t steps = 0;
  int retries = 0;
  bool release = false;
};

struct HeldJob {
  Job job;
  Hold hold;
  JobState written{};           ///< its state in the database
  std::vector<Step> pending{};  ///< steps since then, which are not written yet
  int retries = 0;              ///< used in the pending steps
  std::optional<int> return_code{};
  bool release = false;  ///< the lease is given back with the next write
  std::optional<UnconfirmedWrite> unconfirmed{};

  Phase phase = Phase::waiting;
  Need need{};
  exec::TaskId task = 0;      ///< 0 = none
  int node = kOwnMachine;     ///< of the task
  bool told_to_end = false;   ///< the task was
  bool out_of_hands = false;  ///< a user has ended or moved the job, or somebody else has it
  std::optional<Clock::Time> limit{};  ///< of the task
  bool own_limit = false;              ///< `limit` is the job's, not a hook's
  std::optional<RunEnd> judged{};      ///< in Phase::judging
};

}  // namespace kolo::jobs

// A launcher's side of the database: it takes jobs under a lease, and writes what became of them.
//
// A launcher is one row; while it is heard of within its lease, the jobs that name it are its own.
// Whoever finds a launcher silent for longer marks its row lost and frees its jobs, in one
// transaction. The launcher, should it still live, learns it with its next write
// (failed_precondition) and none of its writes can happen any more: its jobs do not name it. This
// is the fence that keeps a job from being finished twice.
//
// Silence is judged by two clocks, since a date may step, and does when a machine is set right or
// was asleep: by the dates in the rows, and by how long the row has been seen unchanged here.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "jobs/database/changes.h"
#include "kolo/jobs.h"

namespace kolo::jobs {

enum class LauncherState : std::int64_t { alive = 1, ended = 2, lost = 3 };

struct LauncherRecord {
  std::int64_t id = 0;
  std::string host;
  std::int64_t pid = 0;
  LauncherState state = LauncherState::alive;
  double started = 0, heard = 0, lease_seconds = 0;
  std::string about;  ///< JSON: nodes, mode, filter …
};
std::vector<LauncherRecord> launchers(JobDatabase& jobs, bool alive_only);

/// Names this machine, as long as it is up, with the numbers of its processes: a launcher writes it
/// into `about` ("processes"), so that others there see at once when its process is gone.
std::string process_space();

/// What jobs a launcher can use.
struct Wanted {
  int single = 0;   ///< so many of one node at most
  int several = 0;  ///< so many of several nodes
  int nodes = 1;    ///< what it has; no more than this on each:
  int cores = 1;
  double gpus = 0;
  bool one_rank_only = false;
  std::string workflow{};  ///< name or pattern of workflows (name_pattern.h); "" = all
};

struct Taken {
  Job job;
  Hold hold;
};

class Leases {
 public:
  /// Enters the launcher.
  Leases(JobDatabase& jobs, double lease_seconds, const std::string& about);

  [[nodiscard]] std::int64_t id() const noexcept { return id_; }

  /// The largest and longest first. After an error nobody knows whether jobs were taken: taken()
  /// tells.
  std::vector<Taken> take(const Wanted& wanted);
  /// All jobs that this launcher has in the database.
  std::vector<Taken> taken();

  /// One transaction; says of each chain whether it was written (or had been: it may be repeated
  /// after an error). Otherwise the job is not as it was: killed, or somebody else's.
  /// Throws failed_precondition if the launcher counts as lost. Also keeps the lease.
  std::vector<bool> write(const std::vector<Changes::Chain>& chains);

  /// Whether the last write made jobs ready that had waited for parents.
  [[nodiscard]] bool made_ready() const noexcept { return made_ready_; }

  /// Held jobs that a user has ended.
  std::vector<JobId> killed();
  /// Held jobs that wait for jobs they have added (JobDatabase::yield_place).
  std::vector<JobId> yielding();
  /// The state of a job that is still held; none if it is somebody else's.
  std::optional<JobState> state_of(JobId id, const Hold& hold);
  /// A held job as it is now, after a handler may have changed it.
  Job reread(JobId id);
  /// Frees the jobs of other launchers that have been silent, or whose process on this machine is
  /// gone for as long as its tasks may take to end; how many jobs.
  std::int64_t free_lost();
  /// Whether the last look found a launcher whose process is gone and whose tasks may still run.
  [[nodiscard]] bool waits_for_tasks() const noexcept { return waits_for_tasks_; }
  /// Whether other launchers have jobs of such workflows: more may come from them, or from their
  /// end.
  bool others_work(const std::string& workflow);
  /// Frees what is left and signs off.
  void end() noexcept;

 private:
  /// What this launcher has seen of another.
  struct Seen {
    double heard = 0;
    Clock::Time since;                // when `heard` was seen for the first time
    std::optional<Clock::Time> gone;  // when its process was first seen to be gone
  };

  std::vector<JobId> held_where(std::string_view condition);
  bool keep();
  [[nodiscard]] bool is_silent(const LauncherRecord& launcher, const Seen& seen) const;
  bool was_written(const Changes::Chain& chain);
  std::vector<Taken> select(const Wanted& wanted, bool several, int most);
  std::vector<Taken> read_taken(store::Statement& row);

  JobDatabase& jobs_;
  store::Database& database_;
  std::int64_t id_ = 0;
  bool made_ready_ = false;
  std::map<std::int64_t, Seen> seen_;  // by launcher
  bool waits_for_tasks_ = false;
};

}  // namespace kolo::jobs

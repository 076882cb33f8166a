// What a job of `kolo run` shows of itself, for `kolo top` and `kolo dashboard`.
//
// Each run has a folder of its own below $XDG_STATE_HOME/kolo/runs, which nobody else can enter: a
// lock, which its launcher holds as long as it lives, and status.json, which is replaced when
// something has changed, twice a second at most. The launcher removes the folder at its end; one
// whose lock is free was left by a launcher that was killed, and is removed by whoever sees it.
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"
#include "base/mutex.h"
#include "comm/activity.h"

namespace kolo::launch {

/// Where a rank is. In an elastic job, `worker` is its process; else the same as the rank.
struct RankPlace {
  int rank = 0;
  int worker = 0;
  std::string host;
};

/// From any thread. No call throws: a run that cannot be shown goes on.
class RunBoard {
 public:
  RunBoard(const std::vector<std::string>& argv, const std::filesystem::path& directory,
           bool is_elastic);
  ~RunBoard();
  RunBoard(const RunBoard&) = delete;
  RunBoard& operator=(const RunBoard&) = delete;

  /// The ranks from now on. Generations are those of an elastic job.
  void set_ranks(const std::vector<RankPlace>& places, int generation = 1);
  void ended(int worker, const std::string& how);
  void heard(int rank, const comm::ActivityReport& report);
  /// Something happened that people want to know of.
  void note(const std::string& event);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Rank {
    RankPlace place;
    std::string state = "running";
    comm::ActivityReport last{};
    Time heard{};  // of `last`; zero: never
    double steps_per_s = 0, operations_per_s = 0;
    std::string samples{};
  };

  void write(bool at_once) KOLO_REQUIRES(mutex_);

  Mutex mutex_;
  std::filesystem::path folder_ KOLO_GUARDED_BY(mutex_);  // "" = cannot be shown
  Fd lock_ KOLO_GUARDED_BY(mutex_);
  Json about_ KOLO_GUARDED_BY(mutex_);
  int generation_ KOLO_GUARDED_BY(mutex_) = 0;
  std::vector<Rank> ranks_ KOLO_GUARDED_BY(mutex_);
  Json events_ KOLO_GUARDED_BY(mutex_) = Json::array();
  Time written_ KOLO_GUARDED_BY(mutex_){};
};

/// The runs of this user that are under way, oldest first, as their launchers describe them:
/// {id, host, pid, program, directory, elastic, started, generation, ranks, events}, where a rank
/// is {rank, worker, host, state, steps, operations, steps_per_s, operations_per_s, samples}.
/// Removes what launchers that were killed on this machine have left.
std::vector<Json> runs_under_way();

/// Another text whenever runs_under_way() may have something new to tell. Costs a look at the
/// folder.
std::string runs_version();

/// Who waits for whom: ranks that have waited for the last half second, if there are others that
/// have not. Both empty otherwise.
struct Waiting {
  std::vector<int> waiting, awaited;
};
Waiting who_waits(const Json& run);

}  // namespace kolo::launch

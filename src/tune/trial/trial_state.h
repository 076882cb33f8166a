// A trial as its controller sees it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/tune/callback.h"
#include "store/study_records.h"
#include "tune/executor/executor.h"
#include "tune/output/trial_log.h"
#include "tune/study/steering.h"
#include "tune/trial/checkpoints.h"

namespace kolo::tune {

/// Why a run is being ended; what becomes of the trial when it has.
enum class Ending {
  none,     ///< it ends by itself
  pruned,   ///< the scheduler stopped it
  done,     ///< a stopping rule, itself, or somebody: complete
  paused,   ///< it goes on later from its checkpoint
  cloned,   ///< it goes on from another's checkpoint
  failed,   ///< its report could not be used
  dropped,  ///< the study ends; the trial stays as it is, to be resumed
};

struct TrialState {
  store::TrialRecord record;
  Value config{};  ///< decoded; of live trials
  std::string id{};

  // Of the current run.
  std::int64_t run = 0;
  std::optional<Grant> grant{};
  std::chrono::steady_clock::time_point began{};
  double seconds_before = 0;       ///< when the run began
  std::int64_t run_iteration = 0;  ///< reports, counted from the run's checkpoint
  std::int64_t repeat_until = 0;   ///< reports up to here are known from an earlier run
  bool active = false;             ///< a run is there, working or held
  bool held = false;               ///< paused inside its report, without a checkpoint
  bool stop_wanted = false;        ///< somebody asked for its end
  Ending ending = Ending::none;
  std::string end_reason{};
  std::optional<Ruling> clone{};
  bool cloned_since = false;  ///< its last report, as a resume finds it
  std::optional<std::chrono::steady_clock::time_point> kill_at{};

  // What it has said.
  std::vector<double> values{};  ///< of the objectives, in its last report
  std::string last_metrics{};    ///< JSON; a Value for each of many trials would be large
  double last_seconds = 0;       ///< of running, at the last report
  double last_step = 0;          ///< seconds between the last two
  double last_time = 0;
  std::vector<Checkpoint> checkpoints{};

  std::unique_ptr<TrialLog> log{};

  [[nodiscard]] bool ended() const noexcept { return record.ended_seq.has_value(); }
  /// Neither running nor ended: it may be started.
  [[nodiscard]] bool waiting() const noexcept { return !ended() && (!active || held); }
  [[nodiscard]] RunId run_id() const noexcept { return {record.number, run}; }
};

}  // namespace kolo::tune

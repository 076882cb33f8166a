// A trial in the memory of the study that runs it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/study_records.h"
#include "tune/executor/executor.h"
#include "tune/output/trial_log.h"
#include "tune/trial/checkpoints.h"
#include "tune/trial/ruling.h"
#include "tune/trial/trial_phase.h"

namespace kolo::tune {

struct StudyTrial {
  store::TrialRecord record{};  ///< what the database keeps; `status` follows `phase`
  Value config{};               ///< decoded; empty again when the trial has ended
  std::string id{};
  /// Changed by Trials::set_status alone.
  TrialPhase phase = TrialPhase::pending;

  // The current run.
  std::int64_t run = 0;
  std::optional<Grant> grant{};  ///< its place among the resources
  /// So many ranks are to be left, and the others have not gone yet.
  std::optional<int> shrinks_to{};
  std::chrono::steady_clock::time_point began{};
  double seconds_before = 0;       ///< of running, in earlier runs
  std::int64_t run_iteration = 0;  ///< reports so far, those up to its checkpoint included
  /// Reports up to this iteration are in the database already, from an earlier run.
  std::int64_t repeat_until = 0;
  Fate fate = Fate::open;
  std::string fate_reason{};
  /// Which trial it becomes a copy of, when its run has ended and the other has saved.
  std::optional<Ruling> clone{};
  bool saving = false;  ///< was asked for a checkpoint, which has not come yet
  /// When a run that was told to end is killed.
  std::optional<std::chrono::steady_clock::time_point> kill_at{};

  // Its reports.
  std::vector<double> values{};  ///< of the objectives, in the last report
  std::string last_metrics{};    ///< JSON; a Value for each of many trials would be large
  double last_seconds = 0;       ///< of running, at the last report
  double last_step = 0;          ///< seconds between the last two reports
  double last_time = 0;
  std::vector<Checkpoint> checkpoints{};

  std::unique_ptr<TrialLog> log{};  ///< open while results are written

  [[nodiscard]] bool ended() const noexcept { return has_ended(phase); }
  /// It may be started: it has no run, or one that waits for a place.
  [[nodiscard]] bool waiting() const noexcept {
    return phase == TrialPhase::held ||
           ((phase == TrialPhase::pending || phase == TrialPhase::paused) && !clone);
  }
  [[nodiscard]] RunId run_id() const noexcept { return {record.number, run}; }
  /// Seconds of running until `now`, all runs together.
  [[nodiscard]] double seconds_at(std::chrono::steady_clock::time_point now) const {
    return seconds_before + std::chrono::duration<double>(now - began).count();
  }
};

}  // namespace kolo::tune

// The states of a trial while a study runs, and which of them may follow which.
//
// A trial is a line of runs: it starts, may be paused, cloned or fail, starts again, and ends once.
// The table in trial_phase.cc has a row for every phase, with the status that the database and the
// users see. Trials::set_status is the only place that changes a phase.
#pragma once

#include <span>
#include <string_view>

#include "kolo/tune/trial_status.h"
#include "tune/executor/executor.h"
#include "tune/trial/ruling.h"

namespace kolo::tune {

enum class TrialPhase {
  pending,     ///< has no run; a new trial, or one that starts again
  running,     ///< has a run and a place
  held,        ///< its run waits inside a report, without a checkpoint and without a place
  stopping,    ///< was asked to stop; its next report still counts
  ending,      ///< was told to end; reports do not count any more
  paused,      ///< has no run; goes on later from its checkpoint
  terminated,  ///< has ended well, or was stopped
  failed,      ///< has ended with an error
};

struct PhaseRow {
  TrialPhase phase;
  std::string_view name;
  TrialStatus status;                ///< as the database and the users see it
  std::span<const TrialPhase> next;  ///< the phases that may follow
};

/// The table, a row for each phase in the order of the enumeration.
std::span<const PhaseRow> phase_table() noexcept;

[[nodiscard]] const PhaseRow& row_of(TrialPhase phase) noexcept;
[[nodiscard]] bool may_follow(TrialPhase from, TrialPhase to) noexcept;

[[nodiscard]] constexpr bool has_run(TrialPhase phase) noexcept {
  return phase == TrialPhase::running || phase == TrialPhase::held ||
         phase == TrialPhase::stopping || phase == TrialPhase::ending;
}
[[nodiscard]] constexpr bool has_ended(TrialPhase phase) noexcept {
  return phase == TrialPhase::terminated || phase == TrialPhase::failed;
}

/// What becomes of a trial when its run has ended.
enum class Fate {
  open,     ///< nobody has decided; it depends on how the run ends
  pruned,   ///< terminated: the scheduler stopped it
  done,     ///< terminated: it is complete, or somebody stopped it
  paused,   ///< goes on later from its checkpoint
  cloned,   ///< goes on later from the checkpoint of another trial
  failed,   ///< its report could not be used; it starts again if failures are left
  lost,     ///< as failed, and it was to stop anyway: it does not start again
  dropped,  ///< the study stops; the trial stays pending, to be resumed
};

/// What a verdict of the search means for the run: the fate of the trial and the answer to the
/// report. Verdict::proceed leaves the fate open.
struct Consequence {
  Fate fate = Fate::open;
  Reply reply = Reply::proceed;
};
[[nodiscard]] Consequence consequence_of(Verdict verdict) noexcept;

}  // namespace kolo::tune

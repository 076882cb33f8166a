// Ends trials: asks their runs to stop, records outcomes, and decides whether a trial that failed
// starts again.
#pragma once

#include <string>

#include "tune/study/study_state.h"

namespace kolo::tune {

class TrialEnds {
 public:
  explicit TrialEnds(StudyState& state) : state_(state) {}

  /// The trial shall end in this way. Without a run it ends now; a run is asked first and has the
  /// grace time to follow.
  void want_end(StudyTrial& trial, Fate fate, const std::string& reason);
  /// Its run is told to end, in the answer to the report that it has just made.
  void tell_end(StudyTrial& trial, Fate fate, const std::string& reason);
  /// The run is over: the trial follows its fate. `error` is why the run failed, "" if it did not.
  void follow_fate(StudyTrial& trial, const std::string& error);

  /// Follows what the scheduler has decided about trials that wait.
  void apply_rulings();
  /// Makes the trial, which has no run, a copy of another: its checkpoint, with a varied
  /// configuration.
  void apply_clone(StudyTrial& trial, const Ruling& ruling);
  /// The trial has saved, or will not save any more: those that wait to copy it do so.
  void saved(StudyTrial& trial);
  /// Checkpoints that a run did not finish or did not report, when it is over.
  void remove_leftovers(const StudyTrial& trial);
  /// A result without the study's metric: if no trial has had it, the others will hardly have it.
  /// Said at the first one, and not when all have failed.
  void miss_metric(const StudyTrial& trial, const std::string& what);
  /// The run has left its place.
  void give_back(StudyTrial& trial);
  /// The trial has ended: the search is told the outcome.
  void end(StudyTrial& trial, Fate fate, const std::string& reason);
  void write_policy();
  /// When everybody has been told of its end, the trial need not be kept any more.
  void let_go(std::int64_t number);

 private:
  void become_copy(StudyTrial& trial, const Ruling& ruling);
  void fail_run(StudyTrial& trial, const std::string& why, bool may_restart);
  void wait_as(StudyTrial& trial, TrialPhase phase);
  [[nodiscard]] search::Outcome outcome_of(const StudyTrial& trial, Fate fate) const;

  StudyState& state_;
};

}  // namespace kolo::tune

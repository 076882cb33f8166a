// Changes how many ranks the trials of a study have while they run.
//
// Trials begin with the least number. When places are free that no other trial wants, the study's
// ResourceAllocation gives them to trials that run; when another trial wants to start, they are
// taken back. A rank that is taken leaves at the end of its step, and its place is free when its
// process is gone.
#pragma once

#include "tune/study/study_state.h"
#include "tune/study/trial_starts.h"

namespace kolo::tune {

/// A setting of any scheduler: ranks of trials that have ended join those that run.
inline constexpr const char* kReuseWorkers = "reuse_workers";

/// Scheduling::allocation, or what the setting "reuse_workers" or nothing means. Empty where trials
/// have a fixed number of ranks. Throws invalid_argument for a range or a setting that makes no
/// sense.
ResourceAllocation allocation_of(const Options& options);

class RankSharing {
 public:
  RankSharing(StudyState& state, const TrialStarts& starts) : state_(state), starts_(starts) {}

  /// After the starts of a step.
  void settle();
  /// Ranks that the trial was to give up have gone.
  void shrunk(StudyTrial& trial);

 private:
  [[nodiscard]] std::vector<StudyTrial*> sharers() const;
  [[nodiscard]] RankShares shares_of(const std::vector<StudyTrial*>& trials) const;
  void resize(StudyTrial& trial, int wanted);

  StudyState& state_;
  const TrialStarts& starts_;
};

}  // namespace kolo::tune

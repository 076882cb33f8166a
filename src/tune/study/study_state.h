// What the parts of a controller share: the state of the study between two steps.
#pragma once

#include <string>

#include "base/clock.h"
#include "kolo/tune/options.h"
#include "tune/output/announcements.h"
#include "tune/study/actions.h"
#include "tune/study/journal.h"
#include "tune/study/population_policy.h"
#include "tune/study/resource_pool.h"
#include "tune/study/steering.h"
#include "tune/study/study_changes.h"
#include "tune/trial/trials.h"

namespace kolo::tune {

struct StudyState {
  const Clock& clock;
  Options options;
  Resources per_trial;
  Resources per_rank;  ///< of an elastic trial
  bool makes_directories, needs_finite_values;
  Steering steering;
  Trials trials;
  Journal journal;
  Actions actions;
  ResourcePool pool;
  Announcements announce;
  PolicyFiles policy_files;
  StudyChanges changes;            ///< since the session before
  std::string first_failure{};     ///< of a trial that does not start again
  bool has_missed_metric = false;  ///< a trial has; it was said

  /// The time at which a run that is told to end now is killed.
  [[nodiscard]] Clock::Time end_of_grace() const {
    return clock.now() + clock_duration(options.grace.count());
  }
};

}  // namespace kolo::tune

// A trial as callbacks, loggers and observers see it.
#pragma once

#include <string>

#include "kolo/tune/callback.h"
#include "tune/trial/study_trial.h"

namespace kolo::tune {

struct TrialNaming {
  std::string study;
  std::string prefix;  ///< of names of trials: "trainable" of "trainable_00007"

  [[nodiscard]] std::string name_of(const std::string& trial_id) const {
    return prefix + "_" + trial_id;
  }
};

/// Adds what every report has: training_iteration, time_total_s and time_this_iter_s, unless the
/// trial reports the last itself.
void complete_result(Value& result, std::int64_t iteration, double seconds, double step);

/// Whether kolo puts this field into every result by itself.
[[nodiscard]] bool is_own_field(std::string_view name);

/// The last report with all fields of a result in Ray Tune's layout.
[[nodiscard]] Value full_result(const StudyTrial& trial, const TrialNaming& naming);

[[nodiscard]] TrialInfo info_of(const StudyTrial& trial, const TrialNaming& naming);

/// Its configuration, also when the trial has ended.
[[nodiscard]] Value config_of(const StudyTrial& trial);

}  // namespace kolo::tune

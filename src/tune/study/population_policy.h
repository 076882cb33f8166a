// The history of population based training, in Ray Tune's files. pbt_global.txt has a line for each
// time that a trial became a copy of another. pbt_policy_<trial>.txt has the lines that led to one
// trial; the scheduler pbt_replay repeats such a file as one trial.
//
// A line is JSON: [target, source, its time, the source's time, old configuration, new one], with
// the numbers of trials.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "kolo/tune/options.h"

namespace kolo::tune {

/// The policy a `pbt_replay` scheduler is told to repeat: its setting "policy", or the lines of the
/// file that its setting "policy_file" names. Throws invalid_argument, io.
Value policy_to_repeat(const Scheduling& scheduling);

/// The configuration with which the trial of a policy began. Throws as follow_policy.
Value first_config(const Value& policy);

class PolicyFiles {
 public:
  explicit PolicyFiles(std::filesystem::path directory) : directory_(std::move(directory)) {}

  /// Writes what was added to the policy since the last call; the first call writes everything
  /// anew, since a study that was interrupted may have left less, or half a line.
  void update(const Value& policy, const std::function<std::string(std::int64_t)>& trial_id);

 private:
  std::filesystem::path directory_;
  std::size_t written_ = 0;
};

}  // namespace kolo::tune

// No other process controls a study as long as this lives.
#pragma once

#include <chrono>

#include "store/study_store.h"

namespace kolo::tune {

class StudyClaim {
 public:
  /// A controller that lives writes every second.
  static constexpr std::chrono::milliseconds kWatch{4000};

  /// Throws failed_precondition, naming the process that controls the study. A controller on
  /// another host whose lease is over by the dates is watched for `watch`: if it writes, it lives,
  /// and a clock was set.
  StudyClaim(store::StudyStore& store, store::StudyId study,
             std::chrono::milliseconds watch = kWatch);
  ~StudyClaim() { store_.release(study_); }
  StudyClaim(const StudyClaim&) = delete;
  StudyClaim& operator=(const StudyClaim&) = delete;

 private:
  void watch_for_a_sign(std::chrono::milliseconds time);

  store::StudyStore& store_;
  store::StudyId study_;
};

}  // namespace kolo::tune

// Callbacks: a program learns what happens in its study.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "kolo/tune/session.h"
#include "kolo/tune/trial_status.h"

namespace kolo::tune {

/// A trial as it is now.
struct TrialInfo {
  std::int64_t number = 0;
  std::string id{};    ///< "00007"
  std::string name{};  ///< "trainable_00007"
  TrialStatus status = TrialStatus::pending;
  Config config{};
  Value last_result{};  ///< with training_iteration and the rest; nothing before the first
  std::filesystem::path directory{};
  std::optional<std::filesystem::path> checkpoint{};  ///< the newest
  std::int64_t iteration = 0;
  std::int64_t failures = 0;
  double seconds = 0;    ///< of running
  std::string error{};   ///< of the last failure
  std::string why{};     ///< why it ended early
  bool stopped = false;  ///< ended by the scheduler before it was done
};

/// Called from the thread of tune::run, after the event is in the database. Exceptions end the
/// study as kolo errors do.
class StudyCallback {
 public:
  virtual ~StudyCallback() = default;
  virtual void on_study_begin(const std::string& /*name*/) {}
  virtual void on_trial_start(const TrialInfo& /*trial*/) {}
  virtual void on_trial_result(const TrialInfo& /*trial*/, const Value& /*result*/) {}
  virtual void on_trial_save(const TrialInfo& /*trial*/) {}
  virtual void on_trial_complete(const TrialInfo& /*trial*/) {}
  virtual void on_trial_error(const TrialInfo& /*trial*/) {}
  virtual void on_study_end() {}
};

}  // namespace kolo::tune

// Ends a study that cannot succeed, before it has spent its budget: a program that never works
// fails thousands of times in a minute.
#pragma once

#include <memory>

#include "kolo/search/stopper.h"
#include "tune/output/observer.h"

namespace kolo::tune {

/// Counts the failures of a session until a trial of the study, in this session or before, has
/// succeeded.
class GivingUp final : public Observer {
 public:
  /// `failures`: with so many the study ends if no trial has succeeded; 0 = never.
  explicit GivingUp(std::int64_t failures) : most_(failures) {}

  /// Once it is, it stays so: trials that end because the study gives up have not succeeded.
  [[nodiscard]] bool is_hopeless() const noexcept { return is_hopeless_; }

  void on_trial_complete(const TrialInfo& /*trial*/) override { has_succeeded_ = true; }
  void on_trial_error(const TrialInfo& /*trial*/) override { ++failures_; }
  void on_step(const std::function<StudyView(std::size_t)>& view) override {
    if (has_succeeded_ || is_hopeless_ || most_ == 0 || failures_ < most_) return;
    has_succeeded_ = view(0).counts[static_cast<std::size_t>(TrialStatus::terminated)] > 0;
    is_hopeless_ = !has_succeeded_;
  }
  void on_end(const std::function<StudyView(std::size_t)>& /*view*/) override {}

 private:
  std::int64_t most_, failures_ = 0;
  bool has_succeeded_ = false, is_hopeless_ = false;
};

/// Asks it after each step of the study.
class GivingUpStopper final : public search::Stopper {
 public:
  explicit GivingUpStopper(std::shared_ptr<const GivingUp> giving_up)
      : giving_up_(std::move(giving_up)) {}
  bool stop(search::TrialId /*trial*/, const Value& /*result*/) override { return false; }
  [[nodiscard]] bool stop_all(std::chrono::duration<double> /*elapsed*/) const override {
    return giving_up_->is_hopeless();
  }

 private:
  std::shared_ptr<const GivingUp> giving_up_;
};

}  // namespace kolo::tune

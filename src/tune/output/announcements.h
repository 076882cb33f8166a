// Tells loggers, callbacks and observers what happens in a study.
//
// What they do may take time, and trials wait for answers meanwhile. So calls are queued, and the
// study works the queue off when no trial has a message for it, or when the queue grows too long.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kolo/tune/options.h"
#include "tune/output/observer.h"
#include "tune/output/trial_files.h"

namespace kolo::tune {

class Announcements {
 public:
  Announcements(TrialNaming naming, const Options& options,
                std::vector<std::shared_ptr<Observer>> observers, std::vector<std::string> metrics);
  Announcements(const Announcements&) = delete;
  Announcements& operator=(const Announcements&) = delete;

  [[nodiscard]] const TrialNaming& naming() const noexcept { return naming_; }
  [[nodiscard]] TrialFiles& files() noexcept { return files_; }

  // Told at once.
  void message(const std::string& text);
  void study_begins();
  void study_ends();
  void step(const std::function<StudyView(std::size_t rows)>& view);
  void last_step(const std::function<StudyView(std::size_t rows)>& view);
  /// How long the study may sleep before the next step().
  [[nodiscard]] std::chrono::milliseconds patience() const;

  // Queued.
  void trial_started(StudyTrial& trial);
  void trial_result(StudyTrial& trial);
  void trial_saved(StudyTrial& trial);
  void trial_waits(StudyTrial& trial);
  void run_failed(StudyTrial& trial, const std::string& error);
  void trial_ended(StudyTrial& trial);
  void later(std::function<void()> task) { queue_.push_back(std::move(task)); }

  [[nodiscard]] bool waiting() const noexcept { return !queue_.empty(); }
  /// Works the queue off, until `hurry` is true and at most `leave` calls are left. Returns whether
  /// the files of the trials hold everything that was reported.
  bool work_off(std::size_t leave, const std::function<bool()>& hurry);

 private:
  template <class Call>
  void tell(const Call& call);
  [[nodiscard]] bool watched() const noexcept { return !callbacks_.empty() || !observers_.empty(); }

  TrialNaming naming_;
  std::vector<std::shared_ptr<StudyCallback>> callbacks_;
  std::vector<std::shared_ptr<Observer>> observers_;
  TrialFiles files_;
  std::deque<std::function<void()>> queue_;
};

}  // namespace kolo::tune

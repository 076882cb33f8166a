// The loop of a study: asks the search what to try, has it run, and decides about every report.
//
// One thread does all of it, in steps. A step takes the messages that have come and gathers what
// follows from them: TrialReports records reports, TrialEnds ends trials, TrialStarts starts them,
// RankSharing changes how many ranks they have.
// Then the Journal writes everything in one transaction, and only then the Actions are carried out.
// So nothing is done that is not stored, and a step costs one commit however many messages it
// takes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tune/study/rank_sharing.h"
#include "tune/study/study_state.h"
#include "tune/study/trial_ends.h"
#include "tune/study/trial_reports.h"
#include "tune/study/trial_starts.h"

namespace kolo::tune {

class Controller {
 public:
  /// Replays the journal. The study must be claimed; `executor` puts its messages into `inbox`.
  Controller(StudyState& state, std::shared_ptr<Inbox> inbox, TrialExecutor& executor,
             const std::atomic<bool>* interrupted);
  ~Controller();

  /// Runs to the end of the study, or until it is interrupted.
  void run();
  [[nodiscard]] bool was_interrupted() const noexcept { return leaving_ == Leaving::interrupted; }

 private:
  enum class Leaving { no, finished, interrupted, failed };

  void step();
  [[nodiscard]] Deadline next_look() const;
  void handle(Message& message);
  /// Takes the ends whose sender of SIGTERM is known by now: this study's end, or somebody else.
  void judge_terminated();
  void look_at_requests();
  void add_trials(std::int64_t count);
  void check_time();
  void end_overdue(StudyTrial& trial);
  [[nodiscard]] std::optional<Clock::Time> time_limit_of(const StudyTrial& trial) const;
  void leave(Leaving how, const std::string& reason);
  void check_end();
  void wait_for_the_last();
  void kill_all();

  void commit();
  void act(std::size_t backlog);
  /// Makes the trial's directory. False: something else has its name, and the trial fails.
  bool prepare(const StartOrder& order);
  /// Repeats `write` while a database or a folder cannot be written, for as long as
  /// Options::storage_patience; then throws what it throws.
  void patiently(const std::function<void()>& write);
  [[nodiscard]] bool is_interrupted() const noexcept {
    return interrupted_ != nullptr && *interrupted_;
  }
  [[nodiscard]] StudyView view(std::size_t rows) const;

  StudyState& state_;
  TrialEnds ends_{state_};
  TrialStarts starts_{state_, ends_};
  TrialReports reports_{state_, ends_};
  RankSharing sharing_{state_, starts_};
  std::shared_ptr<Inbox> inbox_;
  TrialExecutor& executor_;
  const std::atomic<bool>* interrupted_;

  bool look_for_requests_ = true;
  std::vector<Message> terminated_;  // ends by SIGTERM that nobody here asked for, oldest first
  Leaving leaving_ = Leaving::no;
  class RequestWatcher;
  std::unique_ptr<RequestWatcher> watcher_;
};

}  // namespace kolo::tune

// Takes what trials say: reports, checkpoints, and the ends of their runs.
#pragma once

#include <filesystem>
#include <string>

#include "tune/study/study_state.h"
#include "tune/study/trial_ends.h"

namespace kolo::tune {

class TrialReports {
 public:
  TrialReports(StudyState& state, TrialEnds& ends) : state_(state), ends_(ends) {}

  /// A report, to which the trial waits for an answer.
  void on_report(StudyTrial& trial, Message& message);
  /// A checkpoint of the iteration that was reported last; the trial waits for an answer.
  void on_checkpoint(StudyTrial& trial, const std::filesystem::path& path);
  /// The run is over.
  void on_end(StudyTrial& trial, Message& message);

  /// Reports that were recorded in this session and the ones before.
  [[nodiscard]] std::int64_t recorded() const noexcept { return recorded_; }
  void add_recorded(std::int64_t count) noexcept { recorded_ += count; }

 private:
  /// Lets the search decide about the metrics and writes both into the journal. Throws what is
  /// wrong with the metrics; nothing is recorded then.
  Ruling record(StudyTrial& trial, const Message& message);
  /// Its report cannot be used: the run is told to end.
  void refuse(StudyTrial& trial, const std::string& why);
  void repeat(StudyTrial& trial, const Message& message);
  void made_again(StudyTrial& trial, const Message& message);
  void follow(StudyTrial& trial, const Ruling& ruling, bool saves_on_request);
  void hold(StudyTrial& trial, const std::string& reason);
  void take_last_result(StudyTrial& trial, const Message& end);
  void add_checkpoint(StudyTrial& trial, const std::filesystem::path& named,
                      std::int64_t iteration);

  StudyState& state_;
  TrialEnds& ends_;
  std::int64_t recorded_ = 0;
};

}  // namespace kolo::tune

// The result files of all trials of a study (result.json, progress.csv, …).
//
// The database is complete whether or not they can be written. A failure is therefore told once,
// and a resumed study writes the files anew that may lack something.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "store/study_records.h"
#include "tune/trial/study_trial.h"
#include "tune/trial/trial_info.h"

namespace kolo::tune {

class TrialFiles {
 public:
  TrialFiles(std::vector<std::string> loggers, std::vector<std::string> metrics,
             std::function<void(const std::string&)> say);

  [[nodiscard]] bool enabled() const noexcept { return !loggers_.empty(); }
  void result(StudyTrial& trial, const Value& result);
  void failure(StudyTrial& trial, std::int64_t count, const std::string& error, double time);
  /// The trial waits: its files are closed until the next result.
  void release(StudyTrial& trial);
  void end(StudyTrial& trial, bool success);
  /// Writes out what the loggers still hold. True: all files have all results of this session.
  bool flush();

  /// Replaces the files of a trial by these reports.
  void rewrite(StudyTrial& trial, const std::vector<store::ReportRecord>& reports,
               const TrialNaming& naming);
  /// Something beside the database could not be written.
  void note_unwritten(const std::exception& error);

 private:
  void write(StudyTrial& trial, const std::function<void(TrialLog&)>& write);
  [[nodiscard]] std::unique_ptr<TrialLog> open(const StudyTrial& trial, bool anew) const;

  std::vector<std::string> loggers_, metrics_;
  std::function<void(const std::string&)> say_;
  std::set<StudyTrial*> unflushed_;
  bool complete_ = true;
};

}  // namespace kolo::tune

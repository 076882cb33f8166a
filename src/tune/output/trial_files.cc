#include "tune/output/trial_files.h"

#include <fmt/format.h>

#include <utility>

#include "tune/trial/shown_config.h"

namespace kolo::tune {

TrialFiles::TrialFiles(std::vector<std::string> loggers, std::vector<std::string> metrics,
                       std::function<void(const std::string&)> say)
    : loggers_(std::move(loggers)), metrics_(std::move(metrics)), say_(std::move(say)) {}

std::unique_ptr<TrialLog> TrialFiles::open(const StudyTrial& trial, bool anew) const {
  return std::make_unique<TrialLog>(
      LoggedTrial{trial.record.directory, shown_config(config_of(trial)), metrics_}, loggers_,
      anew);
}

void TrialFiles::write(StudyTrial& trial, const std::function<void(TrialLog&)>& write) {
  if (!enabled()) return;
  try {
    if (!trial.log) trial.log = open(trial, /*anew=*/false);
    write(*trial.log);
  } catch (const std::exception& error) {
    note_unwritten(error);
  }
}

void TrialFiles::note_unwritten(const std::exception& error) {
  if (std::exchange(complete_, false))
    say_(
        fmt::format("the files of trials cannot be written: {}. The database is complete; a "
                    "resumed study writes the files anew",
                    error.what()));
}

void TrialFiles::result(StudyTrial& trial, const Value& result) {
  write(trial, [&](TrialLog& log) {
    log.result(result);
    unflushed_.insert(&trial);
  });
}

void TrialFiles::failure(StudyTrial& trial, std::int64_t count, const std::string& error,
                         double time) {
  write(trial, [&](TrialLog& log) { log.failure(count, error, time); });
}

void TrialFiles::release(StudyTrial& trial) {
  if (trial.log) write(trial, [](TrialLog& log) { log.release(); });
}

void TrialFiles::end(StudyTrial& trial, bool success) {
  write(trial, [success](TrialLog& log) { log.end(success); });
  trial.log.reset();
  unflushed_.erase(&trial);
}

bool TrialFiles::flush() {
  for (auto* trial : unflushed_)
    if (trial->log) write(*trial, [](TrialLog& log) { log.flush(); });
  unflushed_.clear();
  return complete_;
}

void TrialFiles::rewrite(StudyTrial& trial, const std::vector<store::ReportRecord>& reports,
                         const TrialNaming& naming) {
  if (!enabled() || reports.empty()) return;
  try {
    trial.log = open(trial, /*anew=*/true);
    const Value config = shown_config(config_of(trial));
    StudyTrial then;  // the trial as it was at each report
    then.id = trial.id;
    then.record = trial.record;
    then.phase = trial.phase;
    for (const auto& report : reports) {
      then.record.iteration = report.iteration;
      then.last_step = report.seconds - then.last_seconds;
      then.last_seconds = report.seconds;
      then.last_time = report.time;
      then.last_metrics = report.metrics;
      Value result = full_result(then, naming);
      result.as_dict().insert_or_assign("config", config);
      trial.log->result(result);
    }
    trial.log->release();
  } catch (const std::exception& error) {
    note_unwritten(error);
  }
}

}  // namespace kolo::tune

#include "tune/study/study_reader.h"

#include "base/errors.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_spec.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

TrialResult trial_of(const store::StudyRecord& study, const std::string& trainable,
                     const store::TrialRecord& record) {
  TrialResult trial;
  trial.number = record.number;
  trial.id = trial_id(study.first_name, study.created, record.number);
  trial.name = trainable + "_" + trial.id;
  trial.status = record.status;
  trial.config = decode(record.config, "a configuration");
  trial.directory = record.directory;
  trial.iteration = record.iteration;
  trial.failures = record.failures;
  trial.seconds = record.seconds;
  trial.error = record.error;
  trial.why = record.why;
  if (!record.outcome.empty()) {
    const Value outcome = decode(record.outcome, "an outcome");
    trial.stopped = outcome.at_path("state").as_integer() ==
                    static_cast<std::int64_t>(search::TrialState::pruned);
  }
  return trial;
}

/// `last_seconds`: how long the trial had run at the report before.
void add_report(TrialResult& trial, double& last_seconds, const store::ReportRecord& report) {
  Value result = decode(report.metrics, "a report");
  auto& fields = result.as_dict();
  fields.insert_or_assign("training_iteration", report.iteration);
  fields.insert_or_assign("time_total_s", report.seconds);
  fields.try_emplace("time_this_iter_s", report.seconds - last_seconds);
  fields.insert_or_assign("timestamp", static_cast<std::int64_t>(report.time));
  fields.insert_or_assign("trial_id", trial.id);
  last_seconds = report.seconds;
  trial.iteration = report.iteration;
  trial.results.push_back(std::move(result));
}

/// When all its reports are there.
void complete(TrialResult& trial) {
  if (trial.results.empty()) return;
  trial.last_result = trial.results.back();
  const bool over = trial.status == TrialStatus::terminated || trial.status == TrialStatus::error;
  trial.last_result.as_dict().try_emplace("done", over);
}

}  // namespace

std::vector<Objective> objectives_of_spec(const std::string& spec) {
  return StudySpec::from_json(spec).objectives;
}

Analysis read_study(store::StudyStore& store, const std::string& name) {
  const auto study = store.at(name);
  auto read = read_trials(store, study);
  return {name, study.directory, objectives_of_spec(study.spec), std::move(read.trials),
          study.elapsed};
}

TrialsRead read_trials(store::StudyStore& store, const store::StudyRecord& study) {
  const std::string trainable = StudySpec::from_json(study.spec).trainable;
  TrialsRead read{.records = store.trials(study.id)};
  auto& trials = read.trials;
  trials.reserve(read.records.size());
  for (const auto& record : read.records) trials.push_back(trial_of(study, trainable, record));
  std::vector<double> last_seconds(trials.size());
  // While another process controls the study, it may have begun further trials since they were
  // read.
  const auto is_read = [&](std::int64_t trial) { return trial < std::ssize(trials); };
  store.each_report(study.id, [&](store::ReportRecord& report) {
    if (!is_read(report.trial)) return;
    auto& trial = trials.at(static_cast<std::size_t>(report.trial));
    add_report(trial, last_seconds[static_cast<std::size_t>(report.trial)], report);
  });
  for (const auto& checkpoint : store.checkpoints(study.id)) {
    if (!is_read(checkpoint.trial)) continue;
    auto& trial = trials.at(static_cast<std::size_t>(checkpoint.trial));
    trial.checkpoints.push_back({checkpoint.path, checkpoint.iteration});
    trial.checkpoint = checkpoint.path;
  }
  for (auto& trial : trials) complete(trial);
  return read;
}

TrialsRead read_trials(store::StudyStore& store, const store::StudyRecord& study,
                       std::span<const std::int64_t> numbers) {
  const std::string trainable = StudySpec::from_json(study.spec).trainable;
  TrialsRead read;
  for (const std::int64_t number : numbers)
    for (auto& record : store.trials(study.id, {number, number + 1})) {
      auto& trial = read.trials.emplace_back(trial_of(study, trainable, record));
      double seconds = 0;
      for (const auto& report : store.reports_of(study.id, number))
        add_report(trial, seconds, report);
      complete(trial);
      read.records.push_back(std::move(record));
    }
  return read;
}

}  // namespace kolo::tune

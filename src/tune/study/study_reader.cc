#include "tune/study/study_reader.h"

#include "base/errors.h"
#include "tune/protocol/value_text.h"
#include "tune/study/study_spec.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace {

TrialResult trial_of(const store::StudyRecord& study, const std::string& trainable,
                     store::TrialRecord& record) {
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
  trial.error = std::move(record.error);
  trial.why = std::move(record.why);
  if (!record.outcome.empty()) {
    const Value outcome = decode(record.outcome, "an outcome");
    trial.stopped = outcome.at_path("state").as_integer() ==
                    static_cast<std::int64_t>(search::TrialState::pruned);
  }
  return trial;
}

}  // namespace

std::vector<Objective> objectives_of_spec(const std::string& spec) {
  return StudySpec::from_json(spec).objectives;
}

Analysis read_study(store::StudyStore& store, const std::string& name) {
  const auto study = store.at(name);
  const StudySpec spec = StudySpec::from_json(study.spec);
  std::vector<TrialResult> trials;
  auto records = store.trials(study.id);
  trials.reserve(records.size());
  for (auto& record : records) trials.push_back(trial_of(study, spec.trainable, record));
  std::vector<double> last_seconds(trials.size());
  // While another process controls the study, it may have begun further trials since they were
  // read.
  const auto is_read = [&](std::int64_t trial) { return trial < std::ssize(trials); };
  store.each_report(study.id, [&](store::ReportRecord& report) {
    if (!is_read(report.trial)) return;
    auto& trial = trials.at(static_cast<std::size_t>(report.trial));
    double& seconds = last_seconds[static_cast<std::size_t>(report.trial)];
    Value result = decode(report.metrics, "a report");
    auto& fields = result.as_dict();
    fields.insert_or_assign("training_iteration", report.iteration);
    fields.insert_or_assign("time_total_s", report.seconds);
    fields.try_emplace("time_this_iter_s", report.seconds - seconds);
    fields.insert_or_assign("timestamp", static_cast<std::int64_t>(report.time));
    fields.insert_or_assign("trial_id", trial.id);
    seconds = report.seconds;
    trial.iteration = report.iteration;
    trial.results.push_back(std::move(result));
  });
  for (const auto& checkpoint : store.checkpoints(study.id)) {
    if (!is_read(checkpoint.trial)) continue;
    auto& trial = trials.at(static_cast<std::size_t>(checkpoint.trial));
    trial.checkpoints.push_back({checkpoint.path, checkpoint.iteration});
    trial.checkpoint = checkpoint.path;
  }
  for (auto& trial : trials) {
    if (trial.results.empty()) continue;
    trial.last_result = trial.results.back();
    const bool over = trial.status == TrialStatus::terminated || trial.status == TrialStatus::error;
    trial.last_result.as_dict().try_emplace("done", over);
  }
  return {name, study.directory, spec.objectives, std::move(trials), study.elapsed};
}

}  // namespace kolo::tune

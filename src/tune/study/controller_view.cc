// The study as others see it.
#include <algorithm>
#include <cmath>

#include "tune/protocol/value_text.h"
#include "tune/study/controller.h"
#include "tune/study/study_reader.h"

namespace kolo::tune {

using search::Direction;

TrialInfo Controller::info(const TrialState& trial) const {
  TrialInfo info;
  const auto& record = trial.record;
  info.number = record.number;
  info.id = trial.id;
  info.name = setup_.trainable_name + "_" + trial.id;
  info.status = static_cast<TrialStatus>(record.status);
  info.config = trial.config.is_nothing() ? decode(record.config, "a configuration") : trial.config;
  if (!trial.last_metrics.empty()) info.last_result = full_result(trial);
  info.directory = record.directory;
  if (!trial.checkpoints.empty()) info.checkpoint = trial.checkpoints.back().path;
  info.iteration = record.iteration;
  info.failures = record.failures;
  info.seconds = trial.grant
                     ? trial.seconds_before + std::chrono::duration<double>(
                                                  std::chrono::steady_clock::now() - trial.began)
                                                  .count()
                     : record.seconds;
  info.error = record.error;
  info.why = record.why;
  info.stopped = trial.ending == Ending::pruned;
  return info;
}

bool Controller::better(const std::vector<double>& left, const std::vector<double>& right) const {
  const bool smaller = steering_.objectives().front().direction == Direction::minimize;
  if (std::isnan(left.front())) return false;
  if (std::isnan(right.front())) return true;
  return smaller ? left.front() < right.front() : left.front() > right.front();
}

void Controller::note_best(const TrialState& trial) {
  if (trial.values.empty()) return;
  const std::int64_t number = trial.record.number;
  if (!best_ || better(trial.values, best_values_)) {
    best_ = number;
  } else if (*best_ != number || !better(best_values_, trial.values)) {
    return;
  } else {
    // The best has become worse: another may be the best now.
    best_values_ = trial.values;
    for (const auto& other : trials_) {
      if (other->values.empty() || !better(other->values, best_values_)) continue;
      best_ = other->record.number;
      best_values_ = other->values;
    }
    return;
  }
  best_values_ = trial.values;
}

StudyView Controller::view(std::size_t rows) const {
  StudyView view;
  view.name = study_.name;
  view.directory = study_.directory;
  view.objectives = steering_.objectives();
  view.elapsed = elapsed();
  std::copy(std::begin(counts_), std::end(counts_), std::begin(view.counts));
  view.created = static_cast<std::int64_t>(trials_.size());
  view.total = steering_.planned();
  view.reports = reports_;
  view.resources = pool_.describe();
  view.scheduler = steering_.scheduler_status();
  if (best_) view.best = info(*trials_[static_cast<std::size_t>(*best_)]);
  for (const auto& [number, trial] : live_)
    if (trial->grant && view.shown.size() < rows) view.shown.push_back(info(*trial));
  for (const auto& [number, trial] : live_)
    if (!trial->grant && view.shown.size() < rows) view.shown.push_back(info(*trial));
  for (auto trial = trials_.rbegin(); trial != trials_.rend() && view.shown.size() < rows; ++trial)
    if ((*trial)->ended()) view.shown.push_back(info(**trial));
  return view;
}

Analysis Controller::analysis() { return read_study(store_, study_.name); }

}  // namespace kolo::tune

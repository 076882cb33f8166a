#include "tune/study/study_view.h"

namespace kolo::tune {

StudyView view_of(const StudyState& state, std::int64_t reports, std::size_t rows) {
  const auto& trials = state.trials;
  const auto& naming = state.announce.naming();
  StudyView view;
  view.name = naming.study;
  view.directory = state.journal.study().directory;
  view.objectives = state.steering.objectives();
  view.elapsed = state.journal.elapsed();
  view.counts = trials.counts();
  view.created = trials.size();
  view.total = state.steering.planned();
  view.reports = reports;
  view.resources = state.pool.describe();
  view.scheduler = state.steering.scheduler_status();
  if (trials.best() != nullptr) view.best = info_of(*trials.best(), naming);
  const auto show = [&](const StudyTrial& trial, bool wanted) {
    if (wanted && view.shown.size() < rows) view.shown.push_back(info_of(trial, naming));
  };
  for (const auto& [number, trial] : trials.live()) show(*trial, trial->grant.has_value());
  for (const auto& [number, trial] : trials.live()) show(*trial, !trial->grant);
  const auto& kept = trials.kept();
  for (auto entry = kept.rbegin(); entry != kept.rend() && view.shown.size() < rows; ++entry)
    show(*entry->second, entry->second->ended());
  return view;
}

}  // namespace kolo::tune

#include "tune/study/actions.h"

namespace kolo::tune {

void Actions::perform(TrialExecutor& executor, const std::function<void()>& flush,
                      const std::function<bool(const StartOrder&)>& prepare) {
  for (const auto& [id, answer] : answers_) executor.answer(id, answer);
  answers_.clear();
  // Before new runs make checkpoints, perhaps of the same names.
  if (!removals_.empty()) flush();
  for (const auto& [path, trial_dir] : removals_) remove_own(path, trial_dir);
  removals_.clear();
  for (auto& order : starts_) {
    if (prepare(order)) executor.start(std::move(order));
  }
  starts_.clear();
  for (const auto& [id, ranks] : resizes_) executor.resize(id, ranks);
  resizes_.clear();
  for (const RunId id : stops_) executor.stop(id);
  stops_.clear();
}

}  // namespace kolo::tune

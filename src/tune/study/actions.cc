#include "tune/study/actions.h"

namespace kolo::tune {

void Actions::perform(TrialExecutor& executor, const std::function<void()>& flush,
                      const std::function<bool(const StartOrder&)>& prepare) {
  for (const auto& [id, answer] : answers_) executor.answer(id, answer);
  answers_.clear();
  // Before new runs make checkpoints, perhaps of the same names.
  if (!removals_.empty()) flush();
  for (const auto& [path, trial_dir] : removals_) {
    if (!lies_inside(path, trial_dir)) continue;  // the trial has changed its directory since
    std::error_code ignored;                      // what is left of it is in nobody's way
    std::filesystem::remove_all(path, ignored);
  }
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

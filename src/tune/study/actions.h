// What a step of a study leads to: answers, starts, stops and removals. They are gathered while the
// step decides, and carried out only when the journal is written.
#pragma once

#include <filesystem>
#include <functional>
#include <utility>
#include <vector>

#include "tune/executor/executor.h"
#include "tune/trial/checkpoint_paths.h"

namespace kolo::tune {

class Actions {
 public:
  void answer(RunId id, Answer answer) { answers_.emplace_back(id, answer); }
  void start(StartOrder order) { starts_.push_back(std::move(order)); }
  void stop(RunId id) { stops_.push_back(id); }
  void resize(RunId id, int ranks) { resizes_.emplace_back(id, ranks); }
  /// A checkpoint in the directory of its trial that is not kept any longer.
  void remove(std::filesystem::path path, std::filesystem::path trial_dir) {
    removals_.push_back({std::move(path), std::move(trial_dir)});
  }
  /// A path that was to be removed is named again.
  void keep(const std::filesystem::path& path) {
    std::erase_if(removals_, [&path](const auto& old) { return share_files(old.path, path); });
  }

  [[nodiscard]] bool starting() const noexcept { return !starts_.empty(); }

  /// Carries everything out. Answers come first, since trials wait for them. `flush` is called
  /// before anything is removed: a database that a power failure sets back must not name what is
  /// gone. `prepare` is called before each start, which it may refuse by returning false.
  void perform(TrialExecutor& executor, const std::function<void()>& flush,
               const std::function<bool(const StartOrder&)>& prepare);

 private:
  struct Removal {
    std::filesystem::path path, trial_dir;
  };

  std::vector<std::pair<RunId, Answer>> answers_;
  std::vector<StartOrder> starts_;
  std::vector<RunId> stops_;
  std::vector<std::pair<RunId, int>> resizes_;
  std::vector<Removal> removals_;
};

}  // namespace kolo::tune

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
  /// A checkpoint that is not kept any longer.
  void remove(std::filesystem::path path) { removals_.push_back(std::move(path)); }
  /// A path that was to be removed is named again.
  void keep(const std::filesystem::path& path) {
    std::erase_if(removals_, [&path](const auto& old) { return share_files(old, path); });
  }

  [[nodiscard]] bool starting() const noexcept { return !starts_.empty(); }

  /// Carries everything out. Answers come first, since trials wait for them. `flush` is called
  /// before anything is removed: a database that a power failure sets back must not name what is
  /// gone. `prepare` is called with the directory of each trial before it starts.
  void perform(TrialExecutor& executor, const std::function<void()>& flush,
               const std::function<void(const std::filesystem::path&)>& prepare);

 private:
  std::vector<std::pair<RunId, Answer>> answers_;
  std::vector<StartOrder> starts_;
  std::vector<RunId> stops_;
  std::vector<std::pair<RunId, int>> resizes_;
  std::vector<std::filesystem::path> removals_;
};

}  // namespace kolo::tune

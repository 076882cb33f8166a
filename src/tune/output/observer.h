// What draws a study while it runs: the interface, and the picture it gets.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/tune/callback.h"
#include "kolo/tune/options.h"

namespace kolo::tune {

using TrialCounts = std::array<std::int64_t, kTrialStatuses>;  ///< by TrialStatus

/// The state of a study at one moment.
struct StudyView {
  std::string name;
  std::filesystem::path directory;
  std::vector<Objective> objectives;
  double elapsed = 0;  ///< seconds, all sessions together
  TrialCounts counts{};
  std::int64_t created = 0;           ///< trials so far
  std::optional<std::int64_t> total;  ///< trials that are planned, where that is known
  std::int64_t reports = 0;
  std::string resources;  ///< "2/4 CPUs, 0/1 GPUs"
  std::string scheduler;  ///< its status, a line per bracket
  std::optional<TrialInfo> best;
  std::vector<TrialInfo> shown;  ///< running first, then others, as many as were asked for
  bool over = false;
};

/// A callback that can also draw. All calls come from the thread of the study.
class Observer : public StudyCallback {
 public:
  /// Called after each step of the study. `view` makes the picture, and costs only if called.
  virtual void on_step(const std::function<StudyView(std::size_t rows)>& view) = 0;
  /// Called once, after the last step.
  virtual void on_end(const std::function<StudyView(std::size_t rows)>& view) = 0;
  /// A message for the user, for example that the study waits for its database.
  virtual void on_message(const std::string& /*text*/) {}
  /// The longest time between two calls of on_step.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const {
    return std::chrono::seconds(1);
  }
};

}  // namespace kolo::tune

// A study as those see it who draw it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kolo/tune/callback.h"
#include "kolo/tune/options.h"

namespace kolo::tune {

/// The state of a study at a moment.
struct StudyView {
  std::string name;
  std::filesystem::path directory;
  std::vector<Objective> objectives;
  double elapsed = 0;
  std::int64_t counts[5] = {};        ///< by TrialStatus
  std::int64_t created = 0;           ///< trials so far
  std::optional<std::int64_t> total;  ///< planned, where that is known
  std::int64_t reports = 0;
  std::string resources;
  std::string scheduler;  ///< its status, a line per bracket
  std::optional<TrialInfo> best;
  std::vector<TrialInfo> shown;  ///< running first, then others, as many as were asked for
  bool over = false;
};

/// Called from the controller's thread.
class Observer : public Callback {
 public:
  /// The study as it is, when something may have changed; `view` is made only if called.
  virtual void on_step(const std::function<StudyView(std::size_t rows)>& view) = 0;
  /// The last one.
  virtual void on_end(const std::function<StudyView(std::size_t rows)>& view) = 0;
  /// "the database cannot be written: …; trying again", and the like.
  virtual void on_message(const std::string& /*text*/) {}
  /// How long the controller may sleep before the next on_step.
  [[nodiscard]] virtual std::chrono::milliseconds patience() const {
    return std::chrono::seconds(1);
  }
};

}  // namespace kolo::tune

// Finds settings with which a step is faster than with the given ones, or stays with those.
//
// Settings are tried one after the other for a number of steps each, and judged by the median time
// of a step: first sizes of buckets, then each switch point, from the best so far. The best is then
// tried against the given settings once more; it is kept only if it was faster by a margin both
// times. No clock of its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kolo::train {

/// What makes no difference but to speed. Plain data: the first rank shows it to the others.
struct StepSettings {
  std::uint64_t bucket_bytes = 0;
  /// Communicator::one_trip_bytes(); 0 where there is no wire.
  std::uint64_t one_trip_bytes = 0;
  /// During backward a helper reduces buckets, not the thread that trains.
  bool uses_helper = false;

  bool operator==(const StepSettings&) const = default;
};

class StepTuner {
 public:
  /// Sizes of trips are tried if there is one; the helper, if there is a choice.
  StepTuner(const StepSettings& given, bool may_use_helper);

  /// A step has taken this long. Returns the settings to use from now on when they change.
  std::optional<StepSettings> record(double seconds);
  [[nodiscard]] bool is_done() const noexcept { return stage_ == Stage::done; }
  /// What was tried: header and one line per trial.
  [[nodiscard]] std::string csv() const;

 private:
  struct Trial {
    StepSettings settings;
    double seconds = 0;  // median per step
  };
  enum class Stage { sizes, helper, trips, confirmation, done };

  /// What follows the trials made so far; nothing when that was the last stage.
  void plan_next_stage();
  void plan(const StepSettings& settings) { trials_.push_back({settings, 0}); }
  /// The fastest so far if it is faster by the margin; else those given.
  [[nodiscard]] StepSettings best() const;

  const StepSettings given_;
  const bool may_use_helper_;
  Stage stage_ = Stage::sizes;
  std::vector<Trial> trials_;  // those made, and those to come
  std::size_t current_ = 0;
  std::vector<double> times_;  // of the current one
  StepSettings chosen_;
};

}  // namespace kolo::train

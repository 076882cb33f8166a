// Trials and their outcomes, as samplers and schedulers see them.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kolo/search/space.h"

namespace kolo::search {

/// Given by the caller; any numbers, each used once.
enum class TrialId : std::uint64_t {};

enum class Direction { minimize, maximize };

/// The numbers are persistent: never reuse one.
enum class TrialState : std::uint8_t { running = 0, complete = 1, failed = 2, pruned = 3 };

std::string_view to_string(TrialState state) noexcept;
std::string_view to_string(Direction direction) noexcept;

/// How a trial ended.
struct Outcome {
  TrialState state = TrialState::complete;
  /// One per objective. A complete trial with a value that is not finite counts as failed. A pruned
  /// one may leave them out: the last report stands for them.
  std::vector<double> values;
  std::vector<double> constraints;  ///< <= 0 is feasible; empty = none

  static Outcome complete(double value) { return {TrialState::complete, {value}, {}}; }
  static Outcome complete(std::vector<double> values) {
    return {TrialState::complete, std::move(values), {}};
  }
  static Outcome failed() { return {TrialState::failed, {}, {}}; }
  static Outcome pruned(std::vector<double> values = {}) {
    return {TrialState::pruned, std::move(values), {}};
  }
};

/// One line of a sampler's history.
struct Trial {
  std::optional<TrialId> id;  ///< absent: a result from elsewhere
  Point point;
  TrialState state = TrialState::running;
  /// All to be minimised: values of maximised objectives have the other sign here. Of a running
  /// trial: the last report. Empty for a failed one.
  std::vector<double> values;
  double violation = 0;  ///< sum of the positive constraints; 0 = feasible
  double budget = 0;     ///< of the last report; 0 = none

  [[nodiscard]] bool is_running() const noexcept { return state == TrialState::running; }
  /// Complete and feasible.
  [[nodiscard]] bool is_good() const noexcept {
    return state == TrialState::complete && violation <= 0;
  }
};

}  // namespace kolo::search

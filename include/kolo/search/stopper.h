// Rules that end a trial, or the whole study, by looking at results alone.
//
// Ray Tune's, with its names and defaults. A result is a dictionary; metrics inside dictionaries
// are named by paths ("eval/loss"). There is no clock here: the caller says how long the study has
// run.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/search/trial.h"
#include "kolo/search/value.h"

namespace kolo::search {

/// Not thread-safe. Rebuilt after a restart by repeating the calls of stop().
class Stopper {
 public:
  virtual ~Stopper() = default;
  Stopper() = default;
  Stopper(const Stopper&) = delete;
  Stopper& operator=(const Stopper&) = delete;

  /// To be called once with each result of each trial. True: the trial shall stop.
  /// Throws not_found when the result lacks a metric that the rule reads, invalid_argument when it
  /// is not a number.
  virtual bool stop(TrialId trial, const Value& result) = 0;

  /// True: the study shall stop. `elapsed`: how long it has run, all its sessions together.
  [[nodiscard]] virtual bool stop_all(std::chrono::duration<double> /*elapsed*/) const {
    return false;
  }
};

/// Never.
std::unique_ptr<Stopper> noop_stopper();

/// The trial, when any of its metrics is at its limit or beyond (>=).
std::unique_ptr<Stopper> metric_stopper(std::map<std::string, double> limits);

/// The trial, with its max_iter-th result.
std::unique_ptr<Stopper> maximum_iteration_stopper(std::uint64_t max_iter);

struct TrialPlateau {
  std::string metric;
  double std = 0.01;             ///< a plateau is when the deviation is not above this …
  std::size_t num_results = 4;   ///< … over so many results …
  std::size_t grace_period = 4;  ///< … and there have been so many.
  /// With it, only values that are at least as good as the threshold count as a plateau.
  std::optional<double> metric_threshold{};
  Direction mode = Direction::minimize;  ///< of the threshold
};
/// The trial, when its metric does not move any more.
std::unique_ptr<Stopper> trial_plateau_stopper(TrialPlateau rule);

struct ExperimentPlateau {
  std::string metric;
  double std = 0.001;
  std::size_t top = 10;  ///< of so many best results of the study
  Direction mode = Direction::minimize;
  std::size_t patience = 0;  ///< further results to wait for
};
/// The study (and with it every trial that reports), when its best results are alike.
std::unique_ptr<Stopper> experiment_plateau_stopper(ExperimentPlateau rule);

/// The study, after this time. What is left of it survives a restart, because elapsed time does.
std::unique_ptr<Stopper> timeout_stopper(std::chrono::duration<double> timeout);

/// The trial, when the function says so.
std::unique_ptr<Stopper> function_stopper(std::function<bool(TrialId, const Value&)> function);

/// When any of them says so; all of them are told every result.
std::unique_ptr<Stopper> combined_stopper(std::vector<std::unique_ptr<Stopper>> stoppers);

}  // namespace kolo::search

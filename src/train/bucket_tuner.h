// Finds a size of buckets that is faster than the given one, or stays with it.
//
// Sizes are tried one after the other for a number of steps each, and judged by the median time of
// a step. The fastest is then tried against the given size once more; it is kept only if it was
// faster by a margin both times. No clock of its own.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace kolo::train {

class BucketTuner {
 public:
  explicit BucketTuner(std::size_t given_bytes);

  /// A step has taken this long. Returns the size to use from now on when it changes.
  std::optional<std::size_t> record(double seconds);
  [[nodiscard]] bool is_done() const noexcept { return is_done_; }
  /// What was tried: header and one line per trial.
  [[nodiscard]] std::string csv() const;

 private:
  struct Trial {
    std::size_t bytes = 0;
    double seconds = 0;  // median per step
  };
  std::optional<std::size_t> next_trial();

  std::vector<Trial> planned_;  // trials to come follow those made
  std::size_t current_ = 0;
  std::vector<double> times_;  // of the current one
  bool is_confirming_ = false;
  bool is_done_ = false;
  std::size_t chosen_;
};

}  // namespace kolo::train

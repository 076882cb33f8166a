// A model of independent effects: each level of each parameter adds its own share to the outcome.
//
// The outcomes are replaced by normal scores (the quantile of their rank), so that outliers and
// the scale do not matter. Shares are shrunk means of residuals, found by backfitting (Hastie and
// Tibshirani 1986); a level seen n times keeps n / (n + 1) of its mean. Cost: rows x axes x sweeps.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "search/surrogate/parzen.h"

namespace kolo::search {

class EffectModel {
 public:
  /// `rows` point to cells; smaller outcomes are better.
  void fit(const ParzenAxes& axes, std::span<const float* const> rows,
           std::span<const double> outcomes);

  /// The normal score of a fitted row.
  [[nodiscard]] double score(std::size_t row) const { return scores_[row]; }
  /// The share of a cell.
  [[nodiscard]] double effect(std::size_t axis, float cell) const;
  /// How many fitted rows had it.
  [[nodiscard]] std::uint32_t seen(std::size_t axis, float cell) const;

 private:
  [[nodiscard]] std::size_t bin(std::size_t axis, float cell) const;

  ParzenAxes axes_;
  std::vector<std::size_t> begins_;  // of each axis in the two below
  std::vector<double> effects_;
  std::vector<std::uint32_t> counts_;
  std::vector<double> scores_;
};

}  // namespace kolo::search

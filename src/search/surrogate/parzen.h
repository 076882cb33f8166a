// A Parzen estimator (kernel density) over mixed rows: what TPE and BOHB model good and bad with.
//
// Vocabulary: a *row* has one *cell* per axis: a number in [0, 1] on a line, the index of a level
// or of a category, or not-a-number where the parameter is absent. A *kernel* is the row of one
// observation with a *weight*, widened by a *bandwidth* per axis:
//   line      the normal distribution, cut off at 0 and 1;
//   levels    the same, summed over the cell that each level has of [0, 1];
//   category  the observed one with probability 1 - b + b/n, each other one with b/n.
// Where a kernel has no value, or for the one kernel that stands for the prior, an axis has its
// prior. So parameters that exist under a condition only are modelled by the observations that had
// them, and the joint density keeps them together with what they depend on.
//
// The joint density is a weighted sum of products over the axes. Cost of one density: kernels x
// axes multiply-adds in single precision, and one exponential per kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace kolo {
class Random;
}

namespace kolo::search {

struct ParzenAxis {
  enum class Form { line, levels, category };
  Form form = Form::line;
  std::uint32_t count = 0;       ///< of levels or categories
  std::vector<float> log_prior;  ///< per level or category; empty = all the same
};

using ParzenAxes = std::shared_ptr<const std::vector<ParzenAxis>>;

class Parzen {
 public:
  /// `rows` point to cells (one per axis) that are read now; one weight and one kernel each.
  /// `bandwidth` has one entry per axis: a deviation on [0, 1], or b of categories.
  void build(ParzenAxes axes, std::span<const float* const> rows, std::span<const float> weights,
             float prior_weight, std::span<const float> bandwidth);

  /// Kernels, that of the prior being the last one.
  [[nodiscard]] std::size_t size() const noexcept { return kernels_ + 1; }

  /// Logarithm of the joint density (with respect to the prior's measure on lines).
  [[nodiscard]] float log_density(const float* row) const;
  /// The same of one axis alone.
  [[nodiscard]] float log_density(std::size_t axis, float cell) const;

  /// A kernel, with probability in proportion to its weight.
  [[nodiscard]] std::size_t pick(Random& random) const;
  /// A cell of the axis from a kernel.
  [[nodiscard]] float sample(std::size_t axis, std::size_t kernel, Random& random) const;

 private:
  struct Column {
    const float* cells;  // of the kernels
    float width;         // deviation, or b
    float root;          // 1 / (width sqrt 2), of lines: cells are scaled by it
    float same, other;   // logarithms, for categories
    std::size_t table;   // place in tables_ of levels: [level of kernel][level]
    bool complete;       // every kernel has a value
  };

  void scale_lines(Column& column, float* scales);
  void add_axis(std::size_t axis, const float* row_cell, float* sums) const;
  [[nodiscard]] float prior_of(const ParzenAxis& axis, float cell) const;
  [[nodiscard]] float log_sum(const float* sums) const;

  ParzenAxes axes_;
  std::size_t kernels_ = 0;
  std::size_t stride_ = 0;
  std::vector<float> cells_;  // axis by axis
  std::vector<float>
      log_scales_;  // axis by axis: of line kernels, 1 / (width x share inside [0, 1])
  std::vector<float> log_weights_;
  std::vector<float> bases_;  // log weights and, of lines that every kernel has, scales
  std::vector<double> cumulative_;
  std::vector<Column> columns_;
  std::vector<float> tables_;
  // log_inside of means over [0, 1/2], for the width it was last needed for.
  std::vector<float> edge_table_;
  float edge_width_ = 0;
  mutable std::vector<float> sums_;
};

}  // namespace kolo::search

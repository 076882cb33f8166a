// The log density of a row is a log-sum-exp over the kernels of log weight + sum over axes of the
// log of the kernel's density on that axis. The work is arranged by axis: for each axis one loop
// adds its term to the sums of all kernels (add_axis), which the compiler can vectorise.
//
// build() prepares what does not depend on the row. On a line, cells are multiplied by
// 1/(√2·width), so that the exponent is the negative square of a difference, and the logarithm of
// the peak, with the part outside of [0, 1] cut off, is added to the base of the kernel once. For
// levels there is a table of all pairs (centre, level). Kernel number `kernels_`, the last one, is
// the prior.
#include "search/surrogate/parzen.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/errors.h"
#include "kolo/random.h"
#include "search/surrogate/fast_exp.h"

namespace kolo::search {
namespace {

constexpr float kLogRootTwoPi = 0.918938533F;

float curve(float z) { return 0.5F * std::erfc(-z * (1 / std::numbers::sqrt2_v<float>)); }

// log of the share of a normal kernel that lies inside of [0, 1].
float log_inside(float mean, float width) {
  // More than three and a half deviations from both ends: nothing is cut off worth the time.
  if (mean > 3.5F * width && 1 - mean > 3.5F * width) return 0;
  return std::log(std::max(curve((1 - mean) / width) - curve(-mean / width), 1e-6F));
}

}  // namespace

void Parzen::build(ParzenAxes axes, std::span<const float* const> rows,
                   std::span<const float> weights, float prior_weight,
                   std::span<const float> bandwidth) {
  axes_ = std::move(axes);
  const std::size_t dimensions = axes_->size();
  KOLO_CHECK(rows.size() == weights.size() && bandwidth.size() == dimensions);
  kernels_ = rows.size();
  stride_ = kernels_;
  cells_.resize(dimensions * stride_);
  log_scales_.assign(dimensions * stride_, 0);
  columns_.resize(dimensions);
  tables_.clear();

  for (std::size_t k = 0; k < kernels_; ++k)
    for (std::size_t j = 0; j < dimensions; ++j) cells_[j * stride_ + k] = rows[k][j];

  double total = prior_weight;
  for (const float weight : weights) total += weight;
  log_weights_.resize(kernels_ + 1);
  cumulative_.resize(kernels_ + 1);
  double sum = 0;
  for (std::size_t k = 0; k <= kernels_; ++k) {
    const double weight = k < kernels_ ? weights[k] : prior_weight;
    log_weights_[k] = weight > 0 ? static_cast<float>(std::log(weight / total)) : -80.0F;
    cumulative_[k] = sum += weight;
  }

  for (std::size_t j = 0; j < dimensions; ++j) {
    const ParzenAxis& axis = (*axes_)[j];
    Column& column = columns_[j];
    column = {cells_.data() + j * stride_, bandwidth[j], 0, 0, 0, 0, true};
    for (std::size_t k = 0; k < kernels_; ++k)
      column.complete = column.complete && !std::isnan(column.cells[k]);
    if (axis.form == ParzenAxis::Form::category) {
      const float share = column.width / static_cast<float>(axis.count);
      column.same = std::log(1 - column.width + share);
      column.other = std::log(share);
    } else if (axis.form == ParzenAxis::Form::levels) {
      column.table = tables_.size();
      const std::size_t n = axis.count;
      tables_.resize(tables_.size() + n * n);
      float* table = tables_.data() + column.table;
      for (std::size_t center = 0; center < n; ++center) {
        const float mean = (static_cast<float>(center) + 0.5F) / static_cast<float>(n);
        const float first = curve(-mean / column.width);
        const float scale = 1 / std::max(curve((1 - mean) / column.width) - first, 1e-6F);
        float below = first;
        for (std::size_t level = 0; level < n; ++level) {
          const float edge = static_cast<float>(level + 1) / static_cast<float>(n);
          const float upto = curve((edge - mean) / column.width);
          table[center * n + level] = std::log(std::max((upto - below) * scale, 1e-12F));
          below = upto;
        }
      }
    } else {
      scale_lines(column, log_scales_.data() + j * stride_);
    }
  }
  sums_.resize(kernels_ + 1);
  bases_ = log_weights_;
  for (std::size_t j = 0; j < dimensions; ++j) {
    if ((*axes_)[j].form != ParzenAxis::Form::line) continue;
    float* cells = cells_.data() + j * stride_;
    for (std::size_t k = 0; k < kernels_; ++k) {
      if (columns_[j].complete) bases_[k] += log_scales_[j * stride_ + k];
      cells[k] *= columns_[j].root;
    }
  }
}

// Logarithms of the peaks of all kernels on a line. With many kernels the cut-off part is read from
// a table over half of [0, 1], since computing it takes two erfc for each kernel.
void Parzen::scale_lines(Column& column, float* scales) {
  constexpr std::size_t kSteps = 128;  // of half of [0, 1]; the other half is its mirror
  const float width = column.width;
  column.root = 1 / (width * std::numbers::sqrt2_v<float>);
  const float log_peak = -std::log(width) - kLogRootTwoPi;
  const bool by_table = kernels_ > kSteps / 2;
  if (by_table && edge_width_ != width) {
    edge_width_ = width;
    edge_table_.resize(kSteps + 2);
    for (std::size_t i = 0; i < edge_table_.size(); ++i)
      edge_table_[i] = log_inside(static_cast<float>(i) / (2 * kSteps), width);
  }
  for (std::size_t k = 0; k < kernels_; ++k) {
    const float mean = column.cells[k];
    if (std::isnan(mean)) {
      scales[k] = log_peak;
    } else if (by_table) {
      const float at = std::min(mean, 1 - mean) * (2 * kSteps);
      const auto step = static_cast<std::size_t>(at);
      const float share = at - static_cast<float>(step);
      scales[k] = log_peak - (edge_table_[step] * (1 - share) + edge_table_[step + 1] * share);
    } else {
      scales[k] = log_peak - log_inside(mean, width);
    }
  }
}

float Parzen::prior_of(const ParzenAxis& axis, float cell) const {
  if (axis.form == ParzenAxis::Form::line) return 0;
  if (!axis.log_prior.empty()) return axis.log_prior[static_cast<std::size_t>(cell)];
  return -std::log(static_cast<float>(axis.count));
}

void Parzen::add_axis(std::size_t axis, const float* row_cell, float* __restrict sums) const {
  const float cell = *row_cell;
  if (std::isnan(cell)) return;
  const ParzenAxis& form = (*axes_)[axis];
  const Column& column = columns_[axis];
  const float* cells = column.cells;
  const float prior = prior_of(form, cell);
  const std::size_t count = kernels_;
  sums[count] += prior;
  // A kernel without a value compares as not-a-number and falls back to the prior.
  if (form.form == ParzenAxis::Form::line) {
    const float scaled = cell * column.root;
    if (column.complete) {
      // The hot loop; its scales are in bases_.
      for (std::size_t k = 0; k < count; ++k) {
        const float distance = cells[k] - scaled;
        sums[k] -= distance * distance;
      }
      return;
    }
    const float* scales = log_scales_.data() + axis * stride_;
    for (std::size_t k = 0; k < count; ++k) {
      const float distance = cells[k] - scaled;
      const float value = scales[k] - distance * distance;
      sums[k] += value == value ? value : prior;
    }
  } else if (form.form == ParzenAxis::Form::category) {
    const float same = column.same, other = column.other;
    for (std::size_t k = 0; k < count; ++k) {
      const float value = cells[k] == cell ? same : other;
      sums[k] += cells[k] == cells[k] ? value : prior;
    }
  } else {
    const float* table = tables_.data() + column.table + static_cast<std::size_t>(cell);
    for (std::size_t k = 0; k < count; ++k)
      sums[k] +=
          std::isnan(cells[k]) ? prior : table[static_cast<std::size_t>(cells[k]) * form.count];
  }
}

float Parzen::log_sum(const float* sums) const {
  const float largest = largest_of(sums, kernels_ + 1);
  return largest + std::log(sum_exp(sums, kernels_ + 1, largest));
}

float Parzen::log_density(const float* row) const {
  std::copy(bases_.begin(), bases_.end(), sums_.begin());
  for (std::size_t j = 0; j < columns_.size(); ++j) add_axis(j, row + j, sums_.data());
  return log_sum(sums_.data());
}

float Parzen::log_density(std::size_t axis, float cell) const {
  std::copy(log_weights_.begin(), log_weights_.end(), sums_.begin());
  if ((*axes_)[axis].form == ParzenAxis::Form::line && columns_[axis].complete)
    for (std::size_t k = 0; k < kernels_; ++k) sums_[k] += log_scales_[axis * stride_ + k];
  add_axis(axis, &cell, sums_.data());
  return log_sum(sums_.data());
}

// A kernel, drawn in proportion to its weight.
std::size_t Parzen::pick(Random& random) const {
  const double at = random.uniform() * cumulative_.back();
  const auto found = std::upper_bound(cumulative_.begin(), cumulative_.end(), at);
  return std::min(static_cast<std::size_t>(found - cumulative_.begin()), kernels_);
}

float Parzen::sample(std::size_t axis, std::size_t kernel, Random& random) const {
  const ParzenAxis& form = (*axes_)[axis];
  const Column& column = columns_[axis];
  float center = kernel < kernels_ ? column.cells[kernel] : std::nanf("");
  if (form.form == ParzenAxis::Form::line) center /= column.root;
  const auto from_prior = [&]() -> float {
    if (form.form == ParzenAxis::Form::line) return static_cast<float>(random.uniform());
    if (form.log_prior.empty()) return static_cast<float>(random.below(form.count));
    double at = random.uniform();
    for (std::uint32_t i = 0; i + 1 < form.count; ++i)
      if ((at -= std::exp(form.log_prior[i])) < 0) return static_cast<float>(i);
    return static_cast<float>(form.count - 1);
  };
  if (std::isnan(center)) return from_prior();
  if (form.form == ParzenAxis::Form::category)
    return random.uniform() < column.width ? static_cast<float>(random.below(form.count)) : center;

  const float mean = form.form == ParzenAxis::Form::line
                         ? center
                         : (center + 0.5F) / static_cast<float>(form.count);
  // At least about half of every kernel is inside.
  float unit = mean;
  for (int attempt = 0; attempt < 50; ++attempt) {
    unit = mean + column.width * static_cast<float>(random.normal());
    if (unit >= 0 && unit < 1) break;
    unit = mean;
  }
  if (form.form == ParzenAxis::Form::line) return unit;
  return std::min(std::floor(unit * static_cast<float>(form.count)),
                  static_cast<float>(form.count - 1));
}

}  // namespace kolo::search

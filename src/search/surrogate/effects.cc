#include "search/surrogate/effects.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "search/space/encoder.h"

namespace kolo::search {
namespace {

constexpr std::size_t kLineBins = 8;
// A choice of very many has no effects worth a table; its values share bins.
constexpr std::size_t kMostBins = 256;
constexpr int kSweeps = 6;

std::size_t bins_of(const ParzenAxis& axis) {
  return axis.form == ParzenAxis::Form::line ? kLineBins
                                             : std::min<std::size_t>(axis.count, kMostBins);
}

}  // namespace

std::size_t EffectModel::bin(std::size_t axis, float cell) const {
  const ParzenAxis& form = (*axes_)[axis];
  const std::size_t bins = bins_of(form);
  if (std::isnan(cell)) return begins_[axis] + bins;  // absent
  const auto level = form.form == ParzenAxis::Form::line
                         ? std::min(static_cast<std::size_t>(cell * kLineBins), kLineBins - 1)
                         : static_cast<std::size_t>(cell) % bins;
  return begins_[axis] + level;
}

void EffectModel::fit(const ParzenAxes& axes, std::span<const float* const> rows,
                      std::span<const double> outcomes) {
  axes_ = axes;
  const std::size_t dimensions = axes_->size(), count = rows.size();
  begins_.assign(1, 0);
  for (const ParzenAxis& axis : *axes_) begins_.push_back(begins_.back() + bins_of(axis) + 1);
  effects_.assign(begins_.back(), 0);
  counts_.assign(begins_.back(), 0);

  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return outcomes[a] < outcomes[b]; });
  scores_.resize(count);
  for (std::size_t begin = 0; begin < count;) {
    std::size_t end = begin + 1;
    while (end < count && outcomes[order[end]] == outcomes[order[begin]]) ++end;
    const double middle = 0.5 * static_cast<double>(begin + end);
    for (; begin < end; ++begin)
      scores_[order[begin]] = normal_quantile(middle / static_cast<double>(count));
  }

  std::vector<std::size_t> places(count * dimensions);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < dimensions; ++j)
      ++counts_[places[i * dimensions + j] = bin(j, rows[i][j])];
  std::vector<double> residuals = scores_, sums(begins_.back());
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    for (std::size_t j = 0; j < dimensions; ++j) {
      std::fill(sums.begin() + static_cast<std::ptrdiff_t>(begins_[j]),
                sums.begin() + static_cast<std::ptrdiff_t>(begins_[j + 1]), 0.0);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t place = places[i * dimensions + j];
        sums[place] += residuals[i] += effects_[place];
      }
      for (std::size_t b = begins_[j]; b < begins_[j + 1]; ++b)
        effects_[b] = sums[b] / (counts_[b] + 1.0);
      for (std::size_t i = 0; i < count; ++i) residuals[i] -= effects_[places[i * dimensions + j]];
    }
  }
}

double EffectModel::effect(std::size_t axis, float cell) const { return effects_[bin(axis, cell)]; }

std::uint32_t EffectModel::seen(std::size_t axis, float cell) const {
  return counts_[bin(axis, cell)];
}

}  // namespace kolo::search

#include "search/sampler/cells.h"

#include <cmath>

namespace kolo::search {
namespace {

// Beyond this many, a line is as exact as levels and cheaper.
constexpr std::uint64_t kMostLevels = 32;

ParzenAxes make_axes(const Space& space) {
  std::vector<ParzenAxis> axes;
  for (const Parameter& parameter : space.parameters()) {
    ParzenAxis axis;
    if (parameter.kind == Parameter::Kind::categorical) {
      axis.form = ParzenAxis::Form::category;
      axis.count = static_cast<std::uint32_t>(parameter.cardinality);
      if (parameter.cumulative_weights) {
        const auto& sums = *parameter.cumulative_weights;
        for (std::size_t i = 0; i < sums.size(); ++i) {
          const double share = (sums[i] - (i == 0 ? 0 : sums[i - 1])) / sums.back();
          axis.log_prior.push_back(static_cast<float>(std::log(std::max(share, 1e-12))));
        }
      }
    } else if (parameter.is_discrete() && parameter.cardinality <= kMostLevels && !parameter.log &&
               !parameter.normal) {
      axis.form = ParzenAxis::Form::levels;
      axis.count = static_cast<std::uint32_t>(parameter.cardinality);
    }
    axes.push_back(std::move(axis));
  }
  return std::make_shared<const std::vector<ParzenAxis>>(std::move(axes));
}

}  // namespace

CellSpace::CellSpace(std::shared_ptr<const Space> space)
    : encoder_(space, {.categorical = EncoderOptions::Categorical::label}),
      axes_(make_axes(*space)) {}

void CellSpace::append(const Point& point, std::vector<float>& cells) const {
  for (std::size_t i = 0; i < point.size(); ++i) {
    const ParzenAxis& axis = (*axes_)[i];
    double cell = point[i];
    if (std::isnan(cell)) {
    } else if (axis.form == ParzenAxis::Form::line) {
      cell = encoder_.to_unit(i, cell);
    } else if (axis.form == ParzenAxis::Form::levels) {
      cell = std::floor(encoder_.to_unit(i, cell) * axis.count);
    }
    cells.push_back(static_cast<float>(cell));
  }
}

double CellSpace::entry(std::size_t parameter, float cell) const {
  const ParzenAxis& axis = (*axes_)[parameter];
  if (std::isnan(cell) || axis.form == ParzenAxis::Form::category) return cell;
  if (axis.form == ParzenAxis::Form::line) return encoder_.from_unit(parameter, cell);
  return encoder_.from_unit(parameter, (cell + 0.5) / axis.count);
}

}  // namespace kolo::search

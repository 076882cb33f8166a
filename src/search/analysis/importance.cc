// PED-ANOVA: which parameters set the best trials apart.
//
// Watanabe, Bansal and Hutter, "PED-ANOVA: efficiently quantifying hyperparameter importance in
// arbitrary subspaces", IJCAI 2023. For each parameter alone, p is its density among the best `top`
// of the trials and q that among the best `region`; the importance is the Pearson divergence
//   E_q[(p / q - 1)²],
// normalised over the parameters. No model of the objective is needed.
//
// Densities are kernel estimates on cells of the unit interval (one cell per value where values are
// few); a conditional parameter has a further cell for being inactive.
// Cost: O(trials · cells) per parameter.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/errors.h"
#include "kolo/search/analysis.h"
#include "search/space/encoder.h"

namespace kolo::search {
namespace {

constexpr std::uint64_t kCells = 64;
/// So much of every density is uniform: nothing is impossible.
constexpr double kUniformShare = 0.05;

struct Axis {
  const Encoder& encoder;
  std::size_t parameter;
  std::size_t cells;
  bool ordered;

  [[nodiscard]] std::size_t cell_of(double unit) const {
    auto cell = static_cast<std::size_t>(unit * static_cast<double>(cells));
    return std::min(cell, cells - 1);
  }
};

/// The probability of each cell, the last one being "inactive".
std::vector<double> density(const Axis& axis, std::span<const Point> points,
                            std::span<const std::size_t> chosen) {
  std::vector<double> units;
  for (std::size_t place : chosen) {
    double entry = points[place][axis.parameter];
    if (!std::isnan(entry)) units.push_back(axis.encoder.to_unit(axis.parameter, entry));
  }
  auto n = static_cast<double>(units.size());
  std::vector<double> cells(axis.cells + 1, 0);
  cells.back() = static_cast<double>(chosen.size()) - n;
  if (axis.ordered && !units.empty()) {
    // Scott's rule; not narrower than a cell.
    double mean = std::accumulate(units.begin(), units.end(), 0.0) / n;
    double squares = 0;
    for (double unit : units) squares += (unit - mean) * (unit - mean);
    double width = std::max(1.06 * std::sqrt(squares / n) * std::pow(n, -0.2),
                            0.5 / static_cast<double>(axis.cells));
    for (double unit : units) {
      std::vector<double> kernel(axis.cells);
      for (std::size_t c = 0; c < axis.cells; ++c) {
        double z =
            ((static_cast<double>(c) + 0.5) / static_cast<double>(axis.cells) - unit) / width;
        kernel[c] = std::exp(-z * z / 2);
      }
      double total = std::accumulate(kernel.begin(), kernel.end(), 0.0);
      for (std::size_t c = 0; c < axis.cells; ++c) cells[c] += kernel[c] / total;
    }
  } else {
    for (double unit : units) cells[axis.cell_of(unit)] += 1;
  }
  double total = std::accumulate(cells.begin(), cells.end(), 0.0);
  auto count = static_cast<double>(cells.size());
  for (double& cell : cells) cell = (1 - kUniformShare) * cell / total + kUniformShare / count;
  return cells;
}

double pearson_divergence(const std::vector<double>& p, const std::vector<double>& q) {
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += (p[i] - q[i]) * (p[i] - q[i]) / q[i];
  return sum;
}

}  // namespace

std::vector<Importance> parameter_importance(const Space& space, std::span<const Point> points,
                                             std::span<const double> values, Direction direction,
                                             ImportanceOptions options) {
  if (points.size() != values.size())
    throw_error(ErrorCode::invalid_argument, "parameter importance: {} points and {} values",
                points.size(), values.size());
  if (!(options.top > 0 && options.top < options.region && options.region <= 1))
    throw_error(ErrorCode::invalid_argument,
                "parameter importance: top {} and region {} must be 0 < top < region <= 1",
                options.top, options.region);
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (std::isfinite(values[i])) order.push_back(i);
  if (order.size() < 2)
    throw_error(ErrorCode::invalid_argument,
                "parameter importance: it takes at least two trials with a value, not {}",
                order.size());
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return direction == Direction::minimize ? values[a] < values[b] : values[a] > values[b];
  });
  auto best = [&](double share) {
    auto count = std::ceil(share * static_cast<double>(order.size()));
    return std::span(order).first(std::max<std::size_t>(1, static_cast<std::size_t>(count)));
  };

  // A shared_ptr that does not own: the encoder is gone before this function returns.
  Encoder encoder(std::shared_ptr<const Space>(std::shared_ptr<const Space>(), &space),
                  {.categorical = EncoderOptions::Categorical::label});
  std::vector<Importance> result;
  double total = 0;
  for (std::size_t i = 0; i < space.size(); ++i) {
    const Parameter& parameter = space.parameters()[i];
    bool ordered = parameter.kind != Parameter::Kind::categorical;
    std::uint64_t cells = parameter.cardinality == 0 ? kCells : parameter.cardinality;
    if (ordered) cells = std::min(cells, kCells);
    Axis axis{encoder, i, static_cast<std::size_t>(std::min<std::uint64_t>(cells, 4096)), ordered};
    double share = pearson_divergence(density(axis, points, best(options.top)),
                                      density(axis, points, best(options.region)));
    result.push_back({parameter.path, share});
    total += share;
  }
  for (auto& importance : result) importance.share = total > 0 ? importance.share / total : 0;
  std::stable_sort(result.begin(), result.end(),
                   [](const Importance& a, const Importance& b) { return a.share > b.share; });
  return result;
}

}  // namespace kolo::search

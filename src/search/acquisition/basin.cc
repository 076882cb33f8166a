#include "search/acquisition/basin.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "search/surrogate/quadratic.h"

namespace kolo::search {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr std::size_t kPointsPerCoefficient = 3;
/// The bottom lies within so many deviations of the elite from their mean.
constexpr double kReach = 6.0;
/// A quadratic that explains less than the rest of this knows of no basin.
constexpr double kMostUnexplained = 0.5;
/// Steps from the bottom, in deviations of the elite.
constexpr double kShortest = 0.02, kLongest = 2.0;

bool is_number(const Parameter& parameter) {
  return parameter.kind != Parameter::Kind::categorical;
}

/// Whether both have the same choices and the same active parameters.
bool alike(const Space& space, const Point& a, const Point& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isnan(a[i]) != std::isnan(b[i])) return false;
    if (!std::isnan(a[i]) && !is_number(space.parameters()[i]) && a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace

std::size_t Basin::wanted(const Space& space) {
  const auto numbers =
      static_cast<std::size_t>(std::ranges::count_if(space.parameters(), is_number));
  return kPointsPerCoefficient * Quadratic::coefficients(numbers);
}

Basin::Basin(const Moves& moves, std::span<const Point> points, std::span<const double> values,
             std::size_t elite)
    : steps_(moves, points.first(std::min(elite, points.size()))) {
  if (points.empty()) return;
  const Encoder& encoder = moves.encoder();
  const Space& space = encoder.space();
  const Point& best = points[0];
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < best.size(); ++i)
    if (is_number(space.parameters()[i]) && !std::isnan(best[i])) numbers.push_back(i);

  std::vector<VectorXd> rows;
  std::vector<double> kept;
  for (std::size_t k = 0; k < points.size(); ++k) {
    if (!alike(space, points[k], best)) continue;
    VectorXd row(static_cast<Index>(numbers.size()));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      row[static_cast<Index>(i)] = encoder.to_unit(numbers[i], points[k][numbers[i]]);
    rows.push_back(std::move(row));
    kept.push_back(values[k]);
  }
  const auto d = static_cast<Index>(numbers.size());
  const std::size_t inner = std::min(elite, rows.size());
  if (d == 0 || inner < 2) return;

  // In units of the elite's spread a valley is as wide as it is long.
  VectorXd mean = VectorXd::Zero(d);
  for (std::size_t k = 0; k < inner; ++k) mean += rows[k] / static_cast<double>(inner);
  MatrixXd covariance = MatrixXd::Zero(d, d);
  for (std::size_t k = 0; k < inner; ++k)
    covariance += (rows[k] - mean) * (rows[k] - mean).transpose() / static_cast<double>(inner);
  covariance.diagonal().array() += 1e-9 * covariance.trace() + 1e-300;
  const Eigen::LLT<MatrixXd> spread(covariance);
  if (spread.info() != Eigen::Success) return;
  MatrixXd scaled(static_cast<Index>(rows.size()), d);
  for (std::size_t k = 0; k < rows.size(); ++k)
    scaled.row(static_cast<Index>(k)) = spread.matrixL().solve(rows[k] - mean).transpose();

  const auto model =
      Quadratic::fit(scaled, Eigen::Map<VectorXd>(kept.data(), static_cast<Index>(kept.size())));
  if (!model || model->unexplained() > kMostUnexplained) return;
  const VectorXd bottom = mean + spread.matrixL() * model->minimum(kReach);
  if (!bottom.allFinite()) return;
  bottom_ = best;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    (*bottom_)[numbers[i]] =
        encoder.from_unit(numbers[i], std::clamp(bottom[static_cast<Index>(i)], 0.0, 1.0));
}

Point Basin::draw(Random& random) const {
  const double scale = kLongest * std::pow(kShortest / kLongest, random.uniform());
  return steps_.vary(*bottom_, scale, /*from_mean=*/false, random);
}

}  // namespace kolo::search

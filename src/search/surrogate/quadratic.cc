// fit() solves weighted least squares once for each power of the values and keeps the power that
// leaves the least unexplained. minimum() goes along the eigenvectors of the curvature: to the
// bottom where it is positive, and to the limit `reach`, downhill, where it is flat or negative.
#include "search/surrogate/quadratic.h"

#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace kolo::search {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr double kPowers[] = {0.5, 1.0, 2.0};
constexpr double kRidge = 1e-6;
/// How much less the last of the points counts than the first.
constexpr double kFall = 3.0;

MatrixXd features_of(const MatrixXd& points) {
  const Index d = points.cols();
  MatrixXd features(points.rows(),
                    static_cast<Index>(Quadratic::coefficients(static_cast<std::size_t>(d))));
  features.col(0).setOnes();
  features.middleCols(1, d) = points;
  Index at = 1 + d;
  for (Index i = 0; i < d; ++i)
    for (Index j = i; j < (d <= Quadratic::kMostCrossed ? d : i + 1); ++j)
      features.col(at++) = points.col(i).cwiseProduct(points.col(j));
  return features;
}

/// Differences to a little below the least value, raised to `power`, standardised. Empty if equal.
VectorXd raised(const VectorXd& values, double power) {
  const double least = values[0];
  const double below = 0.1 * (values[values.size() / 10] - least);
  VectorXd result = (values.array() - least + below).pow(power).matrix();
  result.array() -= result.mean();
  const double deviation = std::sqrt(result.squaredNorm() / static_cast<double>(result.size()));
  if (!(deviation > 0.0) || !std::isfinite(deviation)) return {};
  return result / deviation;
}

}  // namespace

std::size_t Quadratic::coefficients(std::size_t numbers) {
  const bool crossed = numbers <= static_cast<std::size_t>(kMostCrossed);
  return 1 + numbers + (crossed ? numbers * (numbers + 1) / 2 : numbers);
}

std::optional<Quadratic> Quadratic::fit(const MatrixXd& points, const VectorXd& values) {
  const Index n = points.rows(), d = points.cols();
  MatrixXd features = features_of(points);
  if (d == 0 || 2 * n < 3 * features.cols()) return std::nullopt;
  const VectorXd weights =
      (1.0 + kFall * VectorXd::LinSpaced(n, 0.0, 1.0).array()).inverse().matrix();
  features.array().colwise() *= weights.array();
  MatrixXd normal = features.transpose() * features;
  normal.diagonal().array() += kRidge;
  const Eigen::LLT<MatrixXd> solver(normal);
  if (solver.info() != Eigen::Success) return std::nullopt;

  std::optional<Quadratic> best;
  for (const double power : kPowers) {
    VectorXd target = raised(values, power);
    if (target.size() == 0) continue;
    target.array() *= weights.array();
    const VectorXd coefficients = solver.solve(features.transpose() * target);
    const double left = (features * coefficients - target).squaredNorm() / target.squaredNorm();
    if (!std::isfinite(left) || (best && left >= best->unexplained_)) continue;
    Quadratic found;
    found.unexplained_ = left;
    found.slope_ = coefficients.segment(1, d);
    found.curvature_.setZero(d, d);
    Index at = 1 + d;
    for (Index i = 0; i < d; ++i)
      for (Index j = i; j < (d <= kMostCrossed ? d : i + 1); ++j, ++at) {
        found.curvature_(i, j) += coefficients[at];
        found.curvature_(j, i) += coefficients[at];
      }
    best = std::move(found);
  }
  return best;
}

VectorXd Quadratic::minimum(double reach) const {
  const Eigen::SelfAdjointEigenSolver<MatrixXd> axes(curvature_);
  const VectorXd& bends = axes.eigenvalues();
  const VectorXd slopes = axes.eigenvectors().transpose() * slope_;
  const double least_bend = 1e-3 * bends.cwiseAbs().maxCoeff();
  VectorXd along(slopes.size());
  for (Index i = 0; i < along.size(); ++i)
    along[i] = bends[i] > least_bend ? std::clamp(-slopes[i] / bends[i], -reach, reach)
                                     : std::copysign(reach, -slopes[i]);
  return axes.eigenvectors() * along;
}

}  // namespace kolo::search

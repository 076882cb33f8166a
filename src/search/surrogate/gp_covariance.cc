#include "search/surrogate/gp_covariance.h"

#include <algorithm>

#include "search/surrogate/dense_kernels.h"

namespace kolo::search {
namespace {

using Eigen::Index;

/// |a_i|² + |b_j|² - 2 a_i·b_j for the rows from `first_a` on. Cancellation does no harm: near r =
/// 0 the covariance is linear in r².
void fill_distances(const Eigen::MatrixXd& twice_a, const Eigen::VectorXd& a_norms, Index first_a,
                    const Eigen::MatrixXd& b, const Eigen::VectorXd& b_norms, Index first_b,
                    Index width, Eigen::MatrixXd& out) {
  const Index rows = twice_a.rows() - first_a;
  for (Index j = 0; j < width; ++j)
    for (Index i = 0; i < rows; ++i)
      out(first_a + i, first_b + j) = a_norms[first_a + i] + b_norms[first_b + j];
  dense_kernels().subtract_product(rows, width, b.cols(), twice_a.data() + first_a, twice_a.rows(),
                                   b.data() + first_b, b.rows(),
                                   out.data() + first_a + first_b * out.rows(), out.rows());
}

}  // namespace

Eigen::MatrixXd squared_distances(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  Eigen::MatrixXd distances(a.rows(), b.rows());
  if (distances.size() == 0) return distances;
  fill_distances(2.0 * a, a.rowwise().squaredNorm(), 0, b, b.rowwise().squaredNorm(), 0, b.rows(),
                 distances);
  return distances;
}

Eigen::MatrixXd covariance_lower(const Eigen::MatrixXd& rows, double signal, double noise) {
  constexpr Index kPanel = 64;
  const Index n = rows.rows();
  const Eigen::MatrixXd twice = 2.0 * rows;
  const Eigen::VectorXd norms = rows.rowwise().squaredNorm();
  Eigen::MatrixXd covariance(n, n);
  for (Index first = 0; first < n; first += kPanel) {
    const Index width = std::min(kPanel, n - first);
    fill_distances(twice, norms, first, rows, norms, first, width, covariance);
    for (Index j = first; j < first + width; ++j) {
      dense_kernels().matern52(covariance.data() + j + j * n, n - j, signal);
      covariance(j, j) = signal + noise;
    }
  }
  return covariance;
}

Eigen::MatrixXd covariance_between(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                   double signal) {
  Eigen::MatrixXd covariance = squared_distances(a, b);
  dense_kernels().matern52(covariance.data(), covariance.size(), signal);
  return covariance;
}

}  // namespace kolo::search

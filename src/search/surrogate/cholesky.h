// A Cholesky factor that grows.
//
// K = L Lᵀ for the covariance K of a Gaussian process. Rows can be appended (a new observation, or
// a point that is still running) and dropped again from the end, each in O(n²) instead of the O(n³)
// of factoring anew. Rows are also what prediction needs: for cross-covariances B (one row per
// candidate), the rows X with X Lᵀ = B give the variances, and are exactly the rows that would be
// appended. One blocked routine therefore serves factoring, appending and predicting.
//
// A pivot that rounding made smaller than `floor` is set to it, so that near-duplicates never fail.
#pragma once

#include <Eigen/Core>

namespace kolo::search {

class CholeskyFactor {
 public:
  /// Factors the symmetric matrix whose lower triangle is given. n³/3 multiply-adds.
  void factor(const Eigen::MatrixXd& matrix, double floor);

  /// Appends one row: covariances with the present rows, and with itself. n²/2 multiply-adds.
  void append(const Eigen::VectorXd& cross, double diagonal, double floor);

  /// Forgets all rows but the first `size`.
  void truncate(Eigen::Index size) { size_ = size; }

  [[nodiscard]] Eigen::Index size() const { return size_; }
  [[nodiscard]] double at(Eigen::Index row, Eigen::Index column) const {
    return lower_(row, column);
  }

  /// Solves X Lᵀ = B in place; B has size() columns.
  void solve_rows(Eigen::MatrixXd& rows) const;
  /// Solves L x = b in place. A shorter b is solved with the leading part of L, which is the factor
  /// of the leading part of K.
  void solve_lower(Eigen::VectorXd& vector) const;
  /// Solves Lᵀ x = b in place; of a shorter b, as above.
  void solve_upper(Eigen::VectorXd& vector) const;
  /// K⁻¹, both triangles.
  [[nodiscard]] Eigen::MatrixXd inverse() const;

  /// Σ log L_ii, half of log |K|.
  [[nodiscard]] double half_log_determinant() const;

 private:
  void reserve(Eigen::Index size);

  Eigen::MatrixXd lower_;  // at least size_ x size_; the upper triangle is undefined
  Eigen::Index size_ = 0;
};

}  // namespace kolo::search

// All routines work panel by panel: the product with the finished columns goes through the blocked
// kernel subtract_product, and only the small triangle of the panel is solved column by column. The
// matrix has space for further rows, so that appending one does not copy it.
#include "search/surrogate/cholesky.h"

#include <algorithm>
#include <cmath>

#include "search/surrogate/dense_kernels.h"

namespace kolo::search {
namespace {

using Eigen::Index;

constexpr Index kPanel = 32;  // columns solved one by one between two matrix products

/// X -= A Bᵀ with pointers into larger column-major matrices.
void subtract_product(Index rows, Index columns, Index depth, const double* a, Index a_stride,
                      const double* b, Index b_stride, double* c, Index c_stride) {
  if (rows == 0 || columns == 0 || depth == 0) return;
  dense_kernels().subtract_product(rows, columns, depth, a, a_stride, b, b_stride, c, c_stride);
}

/// The last step of a panel: X := X D⁻ᵀ for the lower triangular D (columns x columns), column by
/// column.
void solve_panel(const double* d, Index d_stride, Index columns, double* x, Index x_stride,
                 Index rows) {
  for (Index j = 0; j < columns; ++j) {
    double* target = x + j * x_stride;
    for (Index k = 0; k < j; ++k) {
      const double factor = d[j + k * d_stride];
      const double* source = x + k * x_stride;
      for (Index i = 0; i < rows; ++i) target[i] -= factor * source[i];
    }
    const double scale = 1.0 / d[j + j * d_stride];
    for (Index i = 0; i < rows; ++i) target[i] *= scale;
  }
}

}  // namespace

void CholeskyFactor::reserve(Index size) {
  if (size <= lower_.rows()) return;
  const Index capacity = std::max<Index>(size, lower_.rows() + lower_.rows() / 4 + 16);
  Eigen::MatrixXd larger(capacity, capacity);
  larger.topLeftCorner(size_, size_) = lower_.topLeftCorner(size_, size_);
  lower_ = std::move(larger);
}

void CholeskyFactor::factor(const Eigen::MatrixXd& matrix, double floor) {
  const Index n = matrix.rows();
  size_ = 0;
  reserve(n);
  size_ = n;
  const Index stride = lower_.rows();
  double* l = lower_.data();
  for (Index j = 0; j < n; ++j)
    std::copy(matrix.data() + j * matrix.rows() + j, matrix.data() + (j + 1) * matrix.rows(),
              l + j * stride + j);
  // Left-looking: a panel of columns takes the product of all finished columns, is factored itself,
  // and is done.
  for (Index first = 0; first < n; first += kPanel) {
    const Index width = std::min(kPanel, n - first);
    double* corner = l + first + first * stride;
    subtract_product(n - first, width, first, l + first, stride, l + first, stride, corner, stride);
    for (Index j = 0; j < width; ++j) {
      double* column = corner + j * stride;
      for (Index k = 0; k < j; ++k) {
        const double factor = corner[j + k * stride];
        const double* source = corner + k * stride;
        for (Index i = j; i < n - first; ++i) column[i] -= factor * source[i];
      }
      const double pivot = std::sqrt(std::max(column[j], floor));
      const double scale = 1.0 / pivot;
      column[j] = pivot;
      for (Index i = j + 1; i < n - first; ++i) column[i] *= scale;
    }
  }
}

void CholeskyFactor::append(const Eigen::VectorXd& cross, double diagonal, double floor) {
  reserve(size_ + 1);
  Eigen::VectorXd row = cross;
  solve_lower(row);
  double remainder = diagonal;
  for (Index i = 0; i < size_; ++i) remainder -= row[i] * row[i];
  lower_.row(size_).head(size_) = row.transpose();
  lower_(size_, size_) = std::sqrt(std::max(remainder, floor));
  ++size_;
}

void CholeskyFactor::solve_rows(Eigen::MatrixXd& rows) const {
  const Index m = rows.rows();
  const Index stride = lower_.rows();
  const double* l = lower_.data();
  double* x = rows.data();
  for (Index first = 0; first < size_; first += kPanel) {
    const Index width = std::min(kPanel, size_ - first);
    subtract_product(m, width, first, x, m, l + first, stride, x + first * m, m);
    solve_panel(l + first + first * stride, stride, width, x + first * m, m, m);
  }
}

void CholeskyFactor::solve_lower(Eigen::VectorXd& vector) const {
  const Index n = vector.size();
  double* x = vector.data();
  for (Index k = 0; k < n; ++k) {
    const double* column = lower_.data() + k * lower_.rows();
    const double value = x[k] /= column[k];
    for (Index i = k + 1; i < n; ++i) x[i] -= value * column[i];
  }
}

void CholeskyFactor::solve_upper(Eigen::VectorXd& vector) const {
  const Index n = vector.size();
  double* x = vector.data();
  for (Index k = n; k-- > 0;) {
    const double* column = lower_.data() + k * lower_.rows();
    // Four sums that do not wait for one another; their number is part of the result's bits.
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    Index i = k + 1;
    for (; i + 4 <= n; i += 4)
      for (Index lane = 0; lane < 4; ++lane) sums[lane] += column[i + lane] * x[i + lane];
    for (; i < n; ++i) sums[0] += column[i] * x[i];
    x[k] = (x[k] - ((sums[0] + sums[1]) + (sums[2] + sums[3]))) / column[k];
  }
}

Eigen::MatrixXd CholeskyFactor::inverse() const {
  const Index n = size_;
  const Index stride = lower_.rows();
  const double* l = lower_.data();
  // Rows of the inverse of Lᵀ: X Lᵀ = I, upper triangular, so a panel concerns its first rows only.
  Eigen::MatrixXd x = Eigen::MatrixXd::Identity(n, n);
  for (Index first = 0; first < n; first += kPanel) {
    const Index width = std::min(kPanel, n - first);
    const Index high = first + width;
    subtract_product(first, width, first, x.data(), n, l + first, stride, x.data() + first * n, n);
    solve_panel(l + first + first * stride, stride, width, x.data() + first * n, n, high);
  }
  // K⁻¹ = X Xᵀ, lower triangle by panels; columns of X left of a row are zero.
  Eigen::MatrixXd negated = Eigen::MatrixXd::Zero(n, n);
  for (Index first = 0; first < n; first += kPanel) {
    const Index width = std::min(kPanel, n - first);
    for (Index below = first; below < n; below += kPanel) {
      const Index high = std::min(kPanel, n - below);
      subtract_product(high, width, n - below, x.data() + below + below * n, n,
                       x.data() + first + below * n, n, negated.data() + below + first * n, n);
    }
  }
  Eigen::MatrixXd inverse(n, n);
  for (Index j = 0; j < n; ++j)
    for (Index i = j; i < n; ++i) inverse(i, j) = inverse(j, i) = -negated(i, j);
  return inverse;
}

double CholeskyFactor::half_log_determinant() const {
  double sum = 0.0;
  for (Index i = 0; i < size_; ++i) sum += std::log(lower_(i, i));
  return sum;
}

}  // namespace kolo::search

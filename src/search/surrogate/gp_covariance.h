// Matérn 5/2 covariances between rows of inputs that scale_inputs() made isotropic:
// k(r) = s² (1 + √5 r + 5/3 r²) exp(-√5 r).
#pragma once

#include <Eigen/Core>

namespace kolo::search {

/// |a_i - b_j|² for all rows of a and b.
Eigen::MatrixXd squared_distances(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);

/// The lower triangle of the covariance of all rows with each other, `noise` added on the diagonal.
Eigen::MatrixXd covariance_lower(const Eigen::MatrixXd& rows, double signal, double noise);

/// Covariances of rows of a with rows of b.
Eigen::MatrixXd covariance_between(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b,
                                   double signal);

}  // namespace kolo::search

// The point of a space with the best acquisition under a Gaussian process.
//
// Candidates come from the prior and from steps around the best observations; the most promising
// climb over discrete neighbours and along the gradient of their continuous parameters (L-BFGS).
// Effort shrinks as the model grows, so that the cost of a search stays about that of one
// factorisation. Points that were tried before are not proposed while others are left.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kolo/random.h"
#include "search/acquisition/acquisition.h"
#include "search/acquisition/moves.h"
#include "search/space/encoder.h"
#include "search/surrogate/gp.h"

namespace kolo::search {

/// Points as inputs of a Gaussian process: the unit cube, choices as columns of 0 and 1/√2.
class GpEncoding {
 public:
  GpEncoding(std::shared_ptr<const Space> space, bool warp_inputs);

  [[nodiscard]] const GpShape& shape() const { return shape_; }
  [[nodiscard]] const Encoder& encoder() const { return encoder_; }
  [[nodiscard]] Eigen::RowVectorXd row(const Point& point) const;
  [[nodiscard]] Eigen::MatrixXd rows(std::span<const Point> points) const;
  /// False if the point is not allowed.
  bool decode(const Eigen::VectorXd& row, Point& point, Random& random) const;
  /// Parameters that gradients move: reals, and integers with many values.
  [[nodiscard]] std::span<const std::size_t> smooth() const { return smooth_; }

 private:
  Encoder encoder_;
  GpShape shape_;
  std::vector<double> scale_;  // of each column
  std::vector<std::size_t> smooth_;
};

class GpSearch {
 public:
  /// `refused` says which points must not be proposed. Keeps references.
  GpSearch(const GaussianProcess& model, const GpEncoding& encoding, const Moves& moves,
           const Acquisition& acquisition, std::function<bool(const Point&)> refused);

  /// `incumbents`: good points known so far, best first. Empty if no point was found that is not
  /// refused.
  [[nodiscard]] Point best(std::span<const Point> incumbents, Random& random) const;

 private:
  struct Scored {
    Point point;
    double score;
  };

  [[nodiscard]] std::vector<Scored> score(std::vector<Point> points) const;
  void climb(Scored& from, Random& random) const;
  void ascend(Scored& from, int evaluations, Random& random) const;

  const GaussianProcess& model_;
  const GpEncoding& encoding_;
  const Moves& moves_;
  const Acquisition& acquisition_;
  std::function<bool(const Point&)> refused_;
};

}  // namespace kolo::search

// The points of a space with the best acquisition under a forest, one or many at a time.
//
// A forest has no slopes to follow: a pool of candidates is drawn from the prior and from steps
// around the best observations, and is drawn closer around its own best in further rounds. Points
// are then taken from the pool one by one by a *multi-point strategy* (DeepHyper's names, in terms
// of the minimised value):
//   cl_min, cl_mean, cl_max  each point taken, and each one that still runs, is assumed to have the
//                            least, mean or greatest value so far (constant liar; Ginsbourger, Le
//                            Riche and Carraro, 2010). The lie goes into the leaves; the trees are
//                            not grown again, so a point costs microseconds instead of a fit.
//   qUCB                     the first point uses κ, every other its own κ ~ Exponential(mean κ)
//   topk                     the best k
//   boltzmann                at random, in proportion to the exponential of the acquisition
#pragma once

#include <Eigen/Core>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/random.h"
#include "search/acquisition/acquisition.h"
#include "search/acquisition/moves.h"
#include "search/surrogate/forest.h"

namespace kolo::search {

/// Points as inputs of a forest: numbers on the unit interval, choices as indices. What is inactive
/// is told apart: -1 for numbers, one choice more for categoricals.
class ForestEncoding {
 public:
  explicit ForestEncoding(std::shared_ptr<const Space> space);

  [[nodiscard]] Eigen::MatrixXd rows(std::span<const Point> points) const;
  [[nodiscard]] const std::vector<int>& choices() const { return choices_; }

 private:
  Encoder encoder_;
  std::vector<int> choices_;  // of each parameter; 0 for numbers
};

enum class MultiPoint { cl_min, cl_mean, cl_max, topk, boltzmann, q_ucb };

struct ForestQuery {
  Acquisition acquisition;
  MultiPoint strategy = MultiPoint::q_ucb;
  bool epistemic = false;  // the deviation between trees alone
  double lie = 0.0;        // for cl_…
  std::size_t candidates = 2000;
  std::size_t count = 1;  // points wanted
};

class ForestSearch {
 public:
  /// `refused` says which points must not be proposed. Keeps references. The forest is changed
  /// during a search and is as before afterwards.
  ForestSearch(Forest& forest, const ForestEncoding& encoding, const Moves& moves,
               std::function<bool(const Point&)> refused);

  /// Up to query.count different points. `incumbents`: good points known so far, best first;
  /// `pending`: points that still run.
  [[nodiscard]] std::vector<Point> best(const ForestQuery& query, std::span<const Point> incumbents,
                                        std::span<const Point> pending, Random& random) const;

 private:
  struct Pool;
  void draw(const ForestQuery& query, std::span<const Point> incumbents, Random& random,
            Pool& pool) const;
  void draw_closer(const ForestQuery& query, Random& random, Pool& pool) const;
  void admit(std::vector<Point> points, Pool& pool) const;
  [[nodiscard]] static Eigen::VectorXd scores(const ForestQuery& query,
                                              const Forest::Prediction& prediction, double kappa);

  Forest& forest_;
  const ForestEncoding& encoding_;
  const Moves& moves_;
  std::function<bool(const Point&)> refused_;
};

}  // namespace kolo::search

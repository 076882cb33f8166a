// The points of a space with the best acquisition under a forest, one or many at a time.
//
// A forest has no slopes to follow: a pool of candidates is drawn from the prior and from steps
// around the best observations, and is drawn closer around its own best in further rounds. Some
// steps have fixed ranges of length, others (unless all parameters are discrete) the spread of the
// best observations (elite_steps.h): they become shorter as the best draw together. Points are then
// taken from the pool one by one by a *multi-point strategy* (DeepHyper's names, in terms of the
// minimised value):
//   cl_min, cl_mean, cl_max  each point taken, and each one that still runs, is assumed to have the
//                            least, mean or greatest value so far (constant liar; Ginsbourger, Le
//                            Riche and Carraro, 2010). The lie goes into the leaves; the trees are
//                            not grown again, so a point costs microseconds instead of a fit.
//   qUCB                     a point alone uses κ, every other its own κ ~ Exponential(mean κ)
//   topk                     the best k
//   boltzmann                at random, in proportion to the exponential of the acquisition
#pragma once

#include <Eigen/Core>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "kolo/random.h"
#include "search/acquisition/acquisition.h"
#include "search/acquisition/elite_steps.h"
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
  bool crowded =
      false;  // so many run that they are a generation: the pool is not drawn much closer
};

/// One pool and the points taken from it.
class ForestSearch {
 public:
  /// Keeps references. The forest holds lies from draw() until Forest::forget().
  ForestSearch(Forest& forest, const ForestEncoding& encoding, const Moves& moves);

  /// `elite`: the best points known so far, best first; `pending`: points that run; `refused` says
  /// which points must not be proposed.
  void draw(const ForestQuery& query, std::span<const Point> elite, std::span<const Point> pending,
            const std::function<bool(const Point&)>& refused, Random& random);

  /// A point was started after the pool was drawn: it is not taken again.
  void started(const Point& point);
  /// How many were.
  [[nodiscard]] std::size_t count_started() const { return count_started_; }

  /// The point that the strategy takes next, with this κ; none if all are taken. `alone`: nothing
  /// else runs. The pool stays as it is until the point is started.
  [[nodiscard]] std::optional<Point> best(double kappa, bool alone, Random& random);

 private:
  using Refused = std::function<bool(const Point&)>;
  void draw_widely(std::span<const Point> elite, const EliteSteps& steps, const Refused& refused,
                   Random& random);
  void draw_closer(const EliteSteps& steps, const Refused& refused, Random& random);
  void admit(std::vector<Point> points, const Refused& refused);
  void assume(std::span<const Point> points);
  [[nodiscard]] bool lies() const;
  [[nodiscard]] Eigen::VectorXd scores(double kappa) const;

  Forest& forest_;
  const ForestEncoding& encoding_;
  const Moves& moves_;
  ForestQuery query_;
  std::vector<Point> points_;
  std::unordered_map<std::uint64_t, std::size_t> places_;  // of points by hash
  Forest::Leaves leaves_;
  std::vector<char> taken_;
  Forest::Prediction prediction_;
  std::size_t count_started_ = 0;
};

}  // namespace kolo::search

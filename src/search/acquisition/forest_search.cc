// draw() makes the pool: first widely (from the prior, and by steps around the best observations),
// then in three rounds closer around the best of the pool itself. admit() drops duplicates and
// refused points, and finds the leaves of the rest once; from then on scoring a candidate needs no
// walk through the trees. best() takes the candidate with the largest score; started() marks it as
// taken and, with a constant-liar strategy, puts the lie into its leaves and predicts the pool
// again.
#include "search/acquisition/forest_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace kolo::search {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr std::uint64_t kMostChoices = 63;  // of a categorical that is split by sets
constexpr int kRounds = 3;                  // in which the pool is drawn closer
constexpr std::size_t kCentres = 10;        // around which it is
// Of steps with a fixed range of lengths. A forest says of what is closer to a good point than its
// neighbours but that it is as good: shorter steps, which win by that, are copies. When the good
// draw together it is the elite's steps that become shorter.
constexpr double kShortestStep = 0.02;

bool is_set(const Parameter& p) {
  return p.kind == Parameter::Kind::categorical && p.cardinality <= kMostChoices;
}

void append(VectorXd& all, const VectorXd& more) {
  all.conservativeResize(all.size() + more.size());
  all.tail(more.size()) = more;
}

double log_uniform(double low, double high, Random& random) {
  return high * std::pow(low / high, random.uniform());
}

/// A step at one of several scales about that of the elite: shorter ones draw together what is
/// good, longer ones keep it from closing too early.
Point vary_as_elite(const EliteSteps& steps, const Point& from, bool from_mean, Random& random) {
  return steps.vary(from, log_uniform(0.1, 2.0, random), from_mean, random);
}

}  // namespace

ForestEncoding::ForestEncoding(std::shared_ptr<const Space> space)
    : encoder_(std::move(space), {.categorical = EncoderOptions::Categorical::label}) {
  for (const Parameter& p : encoder_.space().parameters())
    choices_.push_back(is_set(p) ? static_cast<int>(p.cardinality) + 1 : 0);
}

MatrixXd ForestEncoding::rows(std::span<const Point> points) const {
  MatrixXd rows(static_cast<Index>(points.size()), static_cast<Index>(choices_.size()));
  for (std::size_t c = 0; c < choices_.size(); ++c)
    for (std::size_t i = 0; i < points.size(); ++i) {
      const double entry = points[i][c];
      double& cell = rows(static_cast<Index>(i), static_cast<Index>(c));
      if (choices_[c] > 0)
        cell = std::isnan(entry) ? choices_[c] - 1 : entry;
      else
        cell = std::isnan(entry) ? -1.0 : encoder_.to_unit(c, entry);
    }
  return rows;
}

ForestSearch::ForestSearch(Forest& forest, const ForestEncoding& encoding, const Moves& moves)
    : forest_(forest), encoding_(encoding), moves_(moves) {}

bool ForestSearch::lies() const {
  return query_.strategy == MultiPoint::cl_min || query_.strategy == MultiPoint::cl_mean ||
         query_.strategy == MultiPoint::cl_max;
}

void ForestSearch::assume(std::span<const Point> points) {
  if (!lies() || points.empty()) return;
  const Forest::Leaves leaves = forest_.locate(encoding_.rows(points));
  for (Index i = 0; i < leaves.rows(); ++i) {
    const Eigen::Matrix<std::int32_t, 1, Eigen::Dynamic> own = leaves.row(i);
    forest_.assume(std::span(own.data(), static_cast<std::size_t>(own.size())), query_.lie);
  }
}

void ForestSearch::admit(std::vector<Point> points, const Refused& refused) {
  std::erase_if(points, [&](const Point& point) {
    return refused(point) || !places_.try_emplace(hash_point(point), places_.size()).second;
  });
  const Forest::Leaves found = forest_.locate(encoding_.rows(points));
  Forest::Leaves all(leaves_.rows() + found.rows(), found.cols());
  if (leaves_.rows() > 0) all.topRows(leaves_.rows()) = leaves_;
  all.bottomRows(found.rows()) = found;
  leaves_ = std::move(all);
  std::move(points.begin(), points.end(), std::back_inserter(points_));
  const Forest::Prediction more = forest_.predict(found);
  append(prediction_.mean, more.mean);
  append(prediction_.between, more.between);
  append(prediction_.within, more.within);
}

void ForestSearch::draw_widely(std::span<const Point> elite, const EliteSteps& steps,
                               const Refused& refused, Random& random) {
  std::vector<Point> points;
  const std::size_t around = elite.empty() ? 0 : query_.candidates / 2;
  const std::size_t incumbents = std::min(elite.size(), kCentres);
  for (std::size_t i = 0; i < around; ++i) {
    // The first incumbents are visited most.
    const auto pick = static_cast<std::size_t>(static_cast<double>(incumbents) * random.uniform() *
                                               random.uniform());
    if (steps.any() && i % 2 == 0) {
      points.push_back(vary_as_elite(steps, elite[pick], i % 4 == 0, random));
    } else {
      const double scale = log_uniform(kShortestStep, 0.3, random);
      points.push_back(moves_.vary(elite[pick], scale, random));
    }
  }
  while (points.size() < query_.candidates)
    points.push_back(moves_.encoder().space().sample(random));
  admit(std::move(points), refused);
}

void ForestSearch::draw_closer(const EliteSteps& steps, const Refused& refused, Random& random) {
  if (points_.empty()) return;
  const VectorXd score = scores(query_.acquisition.kappa);
  std::vector<std::size_t> order(points_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t centres = std::min(kCentres, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(centres),
                    order.end(), [&](std::size_t a, std::size_t b) {
                      return std::pair(-score[static_cast<Index>(a)], a) <
                             std::pair(-score[static_cast<Index>(b)], b);
                    });
  std::vector<Point> points;
  const std::size_t each =
      std::max<std::size_t>(query_.candidates / 10 / kCentres, query_.crowded ? 1 : 10);
  for (std::size_t i = 0; i < centres; ++i) {
    const Point& centre = points_[order[i]];
    for (std::size_t k = 0; k < each; ++k)
      points.push_back(steps.any() && k % 2 == 0
                           ? vary_as_elite(steps, centre, false, random)
                           : moves_.vary(centre, log_uniform(kShortestStep, 0.1, random), random));
    if (i < 3)
      for (Point& neighbour : moves_.neighbours(centre, 8, random))
        points.push_back(std::move(neighbour));
  }
  admit(std::move(points), refused);
}

VectorXd ForestSearch::scores(double kappa) const {
  Acquisition acquisition = query_.acquisition;
  acquisition.kappa = kappa;
  VectorXd scores(prediction_.mean.size());
  for (Index i = 0; i < scores.size(); ++i) {
    const double variance =
        prediction_.between[i] + (query_.epistemic ? 0.0 : prediction_.within[i]);
    scores[i] = acquisition.score(prediction_.mean[i], std::sqrt(variance) + 1e-9);
  }
  return scores;
}

void ForestSearch::draw(const ForestQuery& query, std::span<const Point> elite,
                        std::span<const Point> pending, const Refused& refused, Random& random) {
  query_ = query;
  assume(pending);
  const EliteSteps steps(moves_, moves_.all_discrete() ? std::span<const Point>() : elite);
  draw_widely(elite, steps, refused, random);
  for (int round = 0; round < kRounds; ++round) draw_closer(steps, refused, random);
  taken_.assign(points_.size(), 0);
}

void ForestSearch::started(const Point& point) {
  ++count_started_;
  if (const auto place = places_.find(hash_point(point)); place != places_.end())
    taken_[place->second] = 1;
  if (!lies()) return;
  assume(std::span(&point, 1));
  prediction_ = forest_.predict(leaves_);
}

std::optional<Point> ForestSearch::best(double kappa, bool alone, Random& random) {
  const bool own_kappa = query_.strategy == MultiPoint::q_ucb && !alone;
  const VectorXd score = scores(kappa * (own_kappa ? -std::log(1.0 - random.uniform()) : 1.0));
  const bool noisy = query_.strategy == MultiPoint::boltzmann && count_started_ > 0;
  std::optional<std::size_t> pick;
  double best = -std::numeric_limits<double>::infinity();
  for (std::size_t k = 0; k < points_.size(); ++k) {
    // The largest of score + Gumbel noise is a draw from the softmax.
    const double noise = noisy ? -std::log(-std::log(random.uniform() + 1e-300)) : 0.0;
    const double noised = score[static_cast<Index>(k)] + noise;
    if (taken_[k] != 0 || (pick && noised <= best)) continue;
    best = noised;
    pick = k;
  }
  if (!pick) return std::nullopt;
  return points_[*pick];
}

}  // namespace kolo::search

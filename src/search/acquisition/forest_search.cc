#include "search/acquisition/forest_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_set>

namespace kolo::search {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

namespace {

constexpr std::uint64_t kMostChoices = 63;  // of a categorical that is split by sets
constexpr int kRounds = 3;                  // in which the pool is drawn closer
constexpr std::size_t kCentres = 10;        // around which it is
constexpr double kTaken = -std::numeric_limits<double>::infinity();

bool is_set(const Parameter& p) {
  return p.kind == Parameter::Kind::categorical && p.cardinality <= kMostChoices;
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

struct ForestSearch::Pool {
  std::vector<Point> points;
  std::unordered_set<std::uint64_t> hashes;
  Forest::Leaves leaves;
};

ForestSearch::ForestSearch(Forest& forest, const ForestEncoding& encoding, const Moves& moves,
                           std::function<bool(const Point&)> refused)
    : forest_(forest), encoding_(encoding), moves_(moves), refused_(std::move(refused)) {}

void ForestSearch::admit(std::vector<Point> points, Pool& pool) const {
  std::erase_if(points, [&](const Point& point) {
    return refused_(point) || !pool.hashes.insert(hash_point(point)).second;
  });
  const Forest::Leaves found = forest_.locate(encoding_.rows(points));
  Forest::Leaves all(pool.leaves.rows() + found.rows(), found.cols());
  if (pool.leaves.rows() > 0) all.topRows(pool.leaves.rows()) = pool.leaves;
  all.bottomRows(found.rows()) = found;
  pool.leaves = std::move(all);
  std::move(points.begin(), points.end(), std::back_inserter(pool.points));
}

void ForestSearch::draw(const ForestQuery& query, std::span<const Point> incumbents, Random& random,
                        Pool& pool) const {
  std::vector<Point> points;
  const std::size_t around = incumbents.empty() ? 0 : query.candidates / 2;
  for (std::size_t i = 0; i < around; ++i) {
    // The first incumbents are visited most.
    const auto pick = static_cast<std::size_t>(static_cast<double>(incumbents.size()) *
                                               random.uniform() * random.uniform());
    const double scale = 0.3 * std::exp(-5.0 * random.uniform());
    points.push_back(moves_.vary(incumbents[pick], scale, random));
  }
  while (points.size() < query.candidates)
    points.push_back(moves_.encoder().space().sample(random));
  admit(std::move(points), pool);
}

void ForestSearch::draw_closer(const ForestQuery& query, Random& random, Pool& pool) const {
  if (pool.points.empty()) return;
  const VectorXd score = scores(query, forest_.predict(pool.leaves), query.acquisition.kappa);
  std::vector<std::size_t> order(pool.points.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t centres = std::min(kCentres, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(centres),
                    order.end(), [&](std::size_t a, std::size_t b) {
                      return std::pair(-score[static_cast<Index>(a)], a) <
                             std::pair(-score[static_cast<Index>(b)], b);
                    });
  std::vector<Point> points;
  const std::size_t each = std::max<std::size_t>(query.candidates / 10 / kCentres, 10);
  for (std::size_t i = 0; i < centres; ++i) {
    const Point& centre = pool.points[order[i]];
    for (std::size_t k = 0; k < each; ++k)
      points.push_back(moves_.vary(centre, 0.1 * std::exp(-4.0 * random.uniform()), random));
    if (i < 3)
      for (Point& neighbour : moves_.neighbours(centre, 8, random))
        points.push_back(std::move(neighbour));
  }
  admit(std::move(points), pool);
}

VectorXd ForestSearch::scores(const ForestQuery& query, const Forest::Prediction& prediction,
                              double kappa) {
  Acquisition acquisition = query.acquisition;
  acquisition.kappa = kappa;
  VectorXd scores(prediction.mean.size());
  for (Index i = 0; i < scores.size(); ++i) {
    const double variance = prediction.between[i] + (query.epistemic ? 0.0 : prediction.within[i]);
    scores[i] = acquisition.score(prediction.mean[i], std::sqrt(variance) + 1e-9);
  }
  return scores;
}

std::vector<Point> ForestSearch::best(const ForestQuery& query, std::span<const Point> incumbents,
                                      std::span<const Point> pending, Random& random) const {
  const bool lies = query.strategy == MultiPoint::cl_min || query.strategy == MultiPoint::cl_mean ||
                    query.strategy == MultiPoint::cl_max;
  auto assume = [&](const Forest::Leaves& leaves, Index row) {
    const Eigen::Matrix<std::int32_t, 1, Eigen::Dynamic> own = leaves.row(row);
    forest_.assume(std::span(own.data(), static_cast<std::size_t>(own.size())), query.lie);
  };
  if (lies && !pending.empty()) {
    const Forest::Leaves leaves = forest_.locate(encoding_.rows(pending));
    for (Index i = 0; i < leaves.rows(); ++i) assume(leaves, i);
  }
  Pool pool;
  draw(query, incumbents, random, pool);
  for (int round = 0; round < kRounds; ++round) draw_closer(query, random, pool);

  std::vector<Point> chosen;
  const auto size = static_cast<Index>(pool.points.size());
  std::vector<char> taken(pool.points.size(), 0);
  Forest::Prediction prediction;
  VectorXd score;
  for (std::size_t i = 0; i < query.count && chosen.size() < pool.points.size(); ++i) {
    const bool fresh = i == 0 || lies || query.strategy == MultiPoint::q_ucb;
    const bool own_kappa = query.strategy == MultiPoint::q_ucb && (i > 0 || !pending.empty());
    const double kappa =
        query.acquisition.kappa * (own_kappa ? -std::log(1.0 - random.uniform()) : 1.0);
    if (i == 0 || lies) prediction = forest_.predict(pool.leaves);
    if (fresh) score = scores(query, prediction, kappa);
    Index pick = -1;
    if (query.strategy == MultiPoint::boltzmann && i > 0) {
      // The largest of score + Gumbel noise is a draw from the softmax.
      double best = kTaken;
      for (Index k = 0; k < size; ++k) {
        const double noise = -std::log(-std::log(random.uniform() + 1e-300));
        if (taken[k] == 0 && (pick < 0 || score[k] + noise > best)) {
          best = score[k] + noise;
          pick = k;
        }
      }
    } else {
      for (Index k = 0; k < size; ++k)
        if (taken[k] == 0 && (pick < 0 || score[k] > score[pick])) pick = k;
    }
    taken[pick] = 1;
    chosen.push_back(pool.points[pick]);
    if (lies) assume(pool.leaves, pick);
  }
  forest_.forget();
  return chosen;
}

}  // namespace kolo::search

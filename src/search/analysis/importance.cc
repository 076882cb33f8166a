// fANOVA: how much of the variance of the objective over the space each parameter explains.
//
// Hutter, Hoos and Leyton-Brown, "An efficient approach for assessing hyperparameter importance",
// ICML 2014: a random forest learns the objective from the trials, and the variance of the forest
// over the *whole space* is decomposed. So it does not matter that a sampler tried the good region
// more often than the rest.
//
// Vocabulary: the *total effect* of a parameter is the variance that is left when all others are
// fixed, its interactions included. With f the forest, and a and b independent points of the prior,
//   effect(i) = E[(f(a) - f(a with the i-th entry of b))²] / 2   (Jansen 1999),
// and shares are effects divided by their sum. For a sum of functions of one parameter each, that
// is the share of the variance.
//
// Results that were reached with different budgets, of trials that were stopped early say, are told
// apart by one more input of the forest. The integral is taken at the largest budget.
// Cost: a fit, and (parameters + 1) predictions for each of at most kDraws pairs of points.
#include <algorithm>
#include <cmath>

#include "base/errors.h"
#include "kolo/search/analysis.h"
#include "search/acquisition/forest_search.h"
#include "search/space/encoder.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr std::size_t kFewest = 10;  // trials; fewer show chance rather than importance
constexpr std::size_t kDraws = 2048;
constexpr std::size_t kMostRows = 200'000;
constexpr ForestOptions kForest{.split = ForestOptions::Split::best,
                                .trees = 64,
                                .bootstrap = true,
                                .max_features = 1.0,
                                .min_samples_split = 4};

/// Points of the prior from rows of the unit cube, entry by entry.
class Prior {
 public:
  explicit Prior(const std::shared_ptr<const Space>& space)
      : space_(*space), encoder_(space, {.categorical = EncoderOptions::Categorical::label}) {}

  [[nodiscard]] Point at(const std::vector<double>& cube) const {
    Point point(cube.size());
    for (std::size_t i = 0; i < cube.size(); ++i) point[i] = encoder_.from_unit(i, cube[i]);
    for (const std::size_t i : space_.dependency_order())
      if (!space_.is_active(i, point)) point[i] = std::nan("");
    return point;
  }

 private:
  const Space& space_;
  Encoder encoder_;
};

/// A forest over points and budgets.
class Response {
 public:
  Response(const std::shared_ptr<const Space>& space, std::span<const Point> points,
           const VectorXd& values, std::span<const double> budgets)
      : encoding_(space) {
    std::vector<int> choices = encoding_.choices();
    if (!budgets.empty()) {
      largest_ = *std::max_element(budgets.begin(), budgets.end());
      has_budgets_ = *std::min_element(budgets.begin(), budgets.end()) < largest_;
    }
    if (has_budgets_) choices.push_back(0);
    forest_.fit(inputs(points, budgets), values, choices, kForest, Random(0));
  }

  [[nodiscard]] VectorXd operator()(std::span<const Point> points) const {
    return forest_.predict(inputs(points, {})).mean;
  }

 private:
  /// Without budgets, all have the largest.
  [[nodiscard]] MatrixXd inputs(std::span<const Point> points,
                                std::span<const double> budgets) const {
    MatrixXd rows = encoding_.rows(points);
    if (!has_budgets_) return rows;
    rows.conservativeResize(Eigen::NoChange, rows.cols() + 1);
    for (Index i = 0; i < rows.rows(); ++i)
      rows(i, rows.cols() - 1) = budgets.empty() ? largest_ : budgets[static_cast<std::size_t>(i)];
    return rows;
  }

  ForestEncoding encoding_;
  Forest forest_;
  double largest_ = 0;
  bool has_budgets_ = false;
};

/// The total effect of each parameter, not normalised.
std::vector<double> total_effects(const std::shared_ptr<const Space>& space,
                                  const Response& response) {
  const std::size_t width = space->size();
  const std::size_t draws = std::clamp<std::size_t>(kMostRows / (width + 1), 256, kDraws);
  const Prior prior(space);
  Random random(1);
  const auto draw = [&] {
    std::vector<std::vector<double>> cubes(draws, std::vector<double>(width));
    for (auto& cube : cubes)
      for (double& entry : cube) entry = random.uniform();
    return cubes;
  };
  auto here = draw();
  const auto there = draw();
  const auto predict = [&](const std::vector<std::vector<double>>& cubes) {
    std::vector<Point> points;
    points.reserve(cubes.size());
    for (const auto& cube : cubes) points.push_back(prior.at(cube));
    return response(points);
  };
  const VectorXd base = predict(here);
  std::vector<double> effects;
  for (std::size_t i = 0; i < width; ++i) {
    auto moved = here;
    for (std::size_t k = 0; k < draws; ++k) moved[k][i] = there[k][i];
    effects.push_back((predict(moved) - base).squaredNorm() / (2 * static_cast<double>(draws)));
  }
  return effects;
}

}  // namespace

std::vector<Importance> parameter_importance(const Space& given, std::span<const Point> points,
                                             std::span<const double> values,
                                             std::span<const double> budgets) {
  if (points.size() != values.size() || (!budgets.empty() && budgets.size() != values.size()))
    throw_error(ErrorCode::invalid_argument,
                "parameter importance: there are {} points, {} values and {} budgets",
                points.size(), values.size(), budgets.size());
  std::vector<Point> told;
  std::vector<double> targets, reached;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    told.push_back(points[i]);
    targets.push_back(values[i]);
    if (!budgets.empty()) reached.push_back(budgets[i]);
  }
  if (told.size() < kFewest)
    throw_error(ErrorCode::invalid_argument,
                "parameter importance: it takes at least {} results that are numbers, not {}",
                kFewest, told.size());
  // A shared_ptr that does not own: whoever gets it is gone before this function returns.
  const std::shared_ptr<const Space> space(std::shared_ptr<const Space>(), &given);
  const Response response(
      space, told, Eigen::Map<const VectorXd>(targets.data(), static_cast<Index>(targets.size())),
      reached);
  const auto effects = total_effects(space, response);
  double total = 0;
  for (const double effect : effects) total += effect;
  std::vector<Importance> result;
  for (std::size_t i = 0; i < effects.size(); ++i)
    result.push_back({space->parameters()[i].path, total > 0 ? effects[i] / total : 0});
  std::stable_sort(result.begin(), result.end(),
                   [](const Importance& a, const Importance& b) { return a.share > b.share; });
  return result;
}

}  // namespace kolo::search

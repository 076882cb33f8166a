#include "search/surrogate/quadratic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "kolo/random.h"
#include "search/acquisition/basin.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

struct Sample {
  MatrixXd points;
  VectorXd values;
};

/// `count` normal points and a function's values at them, least first.
Sample sample(Index count, Index numbers, const std::function<double(const VectorXd&)>& function) {
  Random random(7);
  std::vector<VectorXd> points;
  for (Index k = 0; k < count; ++k) {
    VectorXd point(numbers);
    for (double& entry : point) entry = random.normal();
    points.push_back(std::move(point));
  }
  std::ranges::sort(points, {}, function);
  Sample result{MatrixXd(count, numbers), VectorXd(count)};
  for (Index k = 0; k < count; ++k) {
    result.points.row(k) = points[static_cast<std::size_t>(k)].transpose();
    result.values[k] = function(points[static_cast<std::size_t>(k)]);
  }
  return result;
}

const VectorXd kOptimum = (VectorXd(3) << 0.4, -0.7, 0.2).finished();

TEST(Quadratic, FindsTheMinimumOfARotatedBowl) {
  MatrixXd bend(3, 3);
  bend << 4.0, 1.0, 0.5, 1.0, 3.0, -0.7, 0.5, -0.7, 2.0;
  const auto [points, values] = sample(
      60, 3, [&](const VectorXd& x) { return 5.0 + (x - kOptimum).dot(bend * (x - kOptimum)); });
  const auto model = Quadratic::fit(points, values);
  ASSERT_TRUE(model);
  EXPECT_LT(model->unexplained(), 1e-9);
  EXPECT_LT((model->minimum(6.0) - kOptimum).norm(), 1e-3);
}

TEST(Quadratic, FindsTheTipOfACone) {
  const auto [points, values] =
      sample(60, 3, [&](const VectorXd& x) { return (x - kOptimum).norm(); });
  const auto model = Quadratic::fit(points, values);
  ASSERT_TRUE(model);
  EXPECT_LT(model->unexplained(), 0.01);
  EXPECT_LT((model->minimum(6.0) - kOptimum).norm(), 0.05);
}

TEST(Quadratic, GoesNoFurtherThanItsReach) {
  const auto [points, values] = sample(60, 3, [](const VectorXd& x) { return x[0]; });
  const auto model = Quadratic::fit(points, values);
  ASSERT_TRUE(model);
  const VectorXd minimum = model->minimum(2.0);
  EXPECT_LE(minimum.cwiseAbs().maxCoeff(), 2.0 * std::sqrt(3.0));
  EXPECT_LT(minimum[0], -1.0);
}

TEST(Quadratic, LeavesOutProductsOfManyNumbers) {
  EXPECT_EQ(Quadratic::coefficients(5), 21u);
  EXPECT_EQ(Quadratic::coefficients(12), 91u);
  EXPECT_EQ(Quadratic::coefficients(13), 27u);
  const auto [points, values] =
      sample(60, 13, [](const VectorXd& x) { return (x.array() - 0.3).square().sum(); });
  const auto model = Quadratic::fit(points, values);
  ASSERT_TRUE(model);
  EXPECT_LT((model->minimum(6.0).array() - 0.3).matrix().norm(), 1e-3);
}

TEST(Quadratic, KnowsNothingFromTooFewOrEqualValues) {
  const auto few = sample(14, 3, [](const VectorXd& x) { return x.squaredNorm(); });
  EXPECT_FALSE(Quadratic::fit(few.points, few.values));
  const auto equal = sample(60, 3, [](const VectorXd&) { return 1.0; });
  EXPECT_FALSE(Quadratic::fit(equal.points, equal.values));
}

TEST(Basin, DrawsAboutTheBottomAndKeepsTheBestChoice) {
  Space::Builder builder;
  builder.add("kind", choice({Value("a"), Value("b")}));
  builder.add("x", uniform(-10.0, 10.0));
  builder.add("y", loguniform(1e-4, 1.0));
  const auto space = builder.build();
  const Moves moves(space);
  const auto value = [](const Point& p) {  // parameters are in the order of their names
    return 100.0 * p[0] + std::pow(p[1] - 3.0, 2.0) + std::pow(std::log10(p[2]) + 2.0, 2.0);
  };
  Random random(3);
  std::vector<Point> points;
  for (int i = 0; i < 300; ++i) points.push_back(space->sample(random));
  std::ranges::sort(points, {}, value);
  points.resize(Basin::wanted(*space));
  std::vector<double> values;
  for (const Point& point : points) values.push_back(value(point));

  const Basin basin(moves, points, values, 10);
  ASSERT_TRUE(basin.any());
  double best = values[0];
  for (int i = 0; i < 100; ++i) {
    const Point drawn = basin.draw(random);
    EXPECT_TRUE(space->allows(drawn));
    best = std::min(best, value(drawn));
  }
  EXPECT_LT(best, 0.01 * values[0]);
}

TEST(Basin, IsNotThereWithoutPoints) {
  Space::Builder builder;
  builder.add("x", uniform(0.0, 1.0));
  const auto space = builder.build();
  const Moves moves(space);
  EXPECT_FALSE(Basin(moves, {}, {}, 10).any());
}

}  // namespace
}  // namespace kolo::search

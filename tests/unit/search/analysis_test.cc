#include "kolo/search/analysis.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search/sampler.h"
#include "kolo/search/scheduler.h"
#include "search/analysis/dominance.h"

namespace kolo::search {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
const std::vector<Direction> kDown2(2, Direction::minimize);

TEST(BestTrial, ByScope) {
  std::vector<Curve> curves{{TrialId{1}, {1, 9, 2}},
                            {TrialId{2}, {4, 4, 4}},
                            {TrialId{3}, {0, 0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 3}},
                            {TrialId{4}, {kNan}},
                            {TrialId{5}, {kInfinity}},
                            {TrialId{6}, {}}};
  auto best = [&](const char* scope, Direction direction = Direction::maximize) {
    return best_trial(curves, direction, parse_scope(scope));
  };
  EXPECT_EQ(best("last"), TrialId{2});
  EXPECT_EQ(best("all"), TrialId{1});
  EXPECT_EQ(best("avg"), TrialId{1});  // 4, as the second: the first of equals
  EXPECT_EQ(best("last-5-avg"), TrialId{3});
  EXPECT_EQ(best("last-10-avg"), TrialId{1});
  EXPECT_EQ(best("last", Direction::minimize), TrialId{1});
  EXPECT_EQ(best("all", Direction::minimize), TrialId{3});
  EXPECT_EQ(best_trial(curves, Direction::maximize, Scope::last, false), TrialId{5});
  EXPECT_EQ(best_trial({}, Direction::maximize), std::nullopt);
  EXPECT_THROW((void)parse_scope("best"), Error);
}

TEST(ParetoFront, LeavesOutWhatIsDominated) {
  std::vector<std::vector<double>> vectors{{1, 5}, {2, 2}, {3, 3}, {5, 1}, {2, 2}, {kNan, 0}};
  EXPECT_EQ(pareto_front(vectors, kDown2), (std::vector<std::size_t>{0, 1, 3, 4}));
  std::vector<Direction> up(2, Direction::maximize);
  EXPECT_EQ(pareto_front(vectors, up), (std::vector<std::size_t>{0, 2, 3}));
  EXPECT_THROW((void)pareto_front(std::vector<std::vector<double>>{{1}}, kDown2), Error);
}

TEST(Fronts, GrowAsIfSortedAtOnce) {
  Random random(1);
  std::vector<Objectives> vectors;
  Fronts fronts;
  for (int i = 0; i < 150; ++i) {
    Objectives vector{static_cast<double>(random.below(30)), static_cast<double>(random.below(30))};
    vectors.push_back(vector);
    fronts.insert(vector);
  }
  // By definition: a front is one more than the deepest front of those that dominate.
  auto front = front_numbers(vectors);
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::size_t expected = 0;
    for (std::size_t j = 0; j < vectors.size(); ++j)
      if (dominates(vectors[j], vectors[i])) expected = std::max(expected, front[j] + 1);
    EXPECT_EQ(front[i], expected);
    EXPECT_EQ(fronts.front_of(vectors[i]), expected);
  }
}

TEST(BestFirst, FrontThenCrowdingThenNan) {
  std::vector<Objectives> vectors{{kNan, 0}, {5, 5}, {0, 4}, {1, 3}, {1.1, 2.9}, {4, 0}};
  auto order = best_first(vectors);
  EXPECT_EQ(order.back(), 0U);
  EXPECT_EQ(order[4], 1U);
  EXPECT_EQ((std::vector<std::size_t>{order[0], order[1]}), (std::vector<std::size_t>{2, 5}));
  std::vector<Objectives> single{{2}, {kNan}, {1}};
  EXPECT_EQ(best_first(single), (std::vector<std::size_t>{2, 0, 1}));
}

TEST(Hypervolume, KnownVolumes) {
  std::vector<std::vector<double>> steps{{1, 3}, {2, 2}, {3, 1}, {9, 9}};
  EXPECT_DOUBLE_EQ(hypervolume(steps, std::vector<double>{4, 4}, kDown2), 6);
  std::vector<Direction> up(2, Direction::maximize);
  EXPECT_DOUBLE_EQ(
      hypervolume(std::vector<std::vector<double>>{{1, 2}, {2, 1}}, std::vector<double>{0, 0}, up),
      3);
  EXPECT_DOUBLE_EQ(hypervolume({}, std::vector<double>{4, 4}, kDown2), 0);
  EXPECT_DOUBLE_EQ(hypervolume(std::vector<std::vector<double>>{{2}, {1}}, std::vector<double>{5},
                               std::vector<Direction>{Direction::minimize}),
                   4);
  EXPECT_THROW((void)hypervolume(steps, std::vector<double>{4}, kDown2), Error);
}

TEST(Hypervolume, AgreesWithCountingCells) {
  // Whole numbers: the volume is the number of unit cells that somebody dominates.
  Random random(2);
  for (std::size_t d : {2, 3, 4, 5}) {
    std::vector<Direction> down(d, Direction::minimize);
    std::size_t side = d == 5 ? 5 : 8;
    for (int round = 0; round < 10; ++round) {
      std::vector<std::vector<double>> vectors(15, std::vector<double>(d));
      for (auto& vector : vectors)
        for (double& x : vector) x = static_cast<double>(random.below(side));
      std::size_t cells = 1;
      for (std::size_t k = 0; k < d; ++k) cells *= side;
      double counted = 0;
      for (std::size_t cell = 0; cell < cells; ++cell) {
        std::vector<double> corner;
        for (std::size_t k = 0, rest = cell; k < d; ++k, rest /= side)
          corner.push_back(static_cast<double>(rest % side));
        for (const auto& vector : vectors) {
          if (vector != corner && !dominates(vector, corner)) continue;
          ++counted;
          break;
        }
      }
      EXPECT_DOUBLE_EQ(
          hypervolume(vectors, std::vector<double>(d, static_cast<double>(side)), down), counted);
    }
  }
}

TEST(Hypervolume, IsFastForThree) {
  Random random(3);
  std::vector<std::vector<double>> vectors;
  for (int i = 0; i < 100'000; ++i)
    vectors.push_back({random.uniform(), random.uniform(), random.uniform()});
  std::vector<Direction> down(3, Direction::minimize);
  double volume = hypervolume(vectors, std::vector<double>(3, 1.0), down);
  EXPECT_GT(volume, 0.99);
  EXPECT_LT(volume, 1);
}

std::map<std::string, double> shares(const std::vector<Importance>& importance) {
  std::map<std::string, double> shares;
  for (const auto& one : importance) shares[one.path] = one.share;
  return shares;
}

// A sum of functions of one parameter each: variances 12, 3, 8/9 and 3/4.
TEST(Importance, IsTheShareOfTheVariance) {
  auto space = Space::Builder()
                   .add("idle", uniform(0, 1))
                   .add("kind", choice({"a", "b", "c"}))
                   .add("lr", loguniform(1e-4, 1))
                   .add("units", uniform(0, 12))
                   .add("width", uniform(0, 6))
                   .build();
  Random random(4);
  std::vector<Point> points;
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    points.push_back(space->sample(random));
    const Point& p = points.back();
    values.push_back((p[1] == 1 ? 2 : 0) + 3 * (std::log10(p[2]) + 4) / 4 + p[3] + p[4]);
  }
  values[0] = kNan;
  const auto importance = parameter_importance(*space, points, values);
  ASSERT_EQ(importance.size(), 5U);
  EXPECT_EQ(importance[0].path, "units");
  auto share = shares(importance);
  const double variance = 12 + 3 + 8.0 / 9 + 0.75;
  EXPECT_NEAR(share["units"], 12 / variance, 0.06);
  EXPECT_NEAR(share["width"], 3 / variance, 0.03);
  EXPECT_NEAR(share["kind"], 8.0 / 9 / variance, 0.03);
  EXPECT_NEAR(share["lr"], 0.75 / variance, 0.03);
  EXPECT_LT(share["idle"], 0.005);
  double total = 0;
  for (const auto& one : importance) total += one.share;
  EXPECT_NEAR(total, 1, 1e-12);
}

// Ishigami's function: total effects 0.558, 0.442 and 0.244 of the variance, the last of them by
// interaction alone.
TEST(Importance, CountsInteractions) {
  constexpr double kPi = 3.14159265358979;
  auto space = Space::Builder()
                   .add("x", uniform(-kPi, kPi))
                   .add("y", uniform(-kPi, kPi))
                   .add("z", uniform(-kPi, kPi))
                   .build();
  Random random(9);
  std::vector<Point> points;
  std::vector<double> values;
  for (int i = 0; i < 1000; ++i) {
    points.push_back(space->sample(random));
    const Point& p = points.back();
    values.push_back(std::sin(p[0]) + 7 * std::pow(std::sin(p[1]), 2) +
                     0.1 * std::pow(p[2], 4) * std::sin(p[0]));
  }
  auto share = shares(parameter_importance(*space, points, values));
  EXPECT_NEAR(share["x"], 0.448, 0.08);
  EXPECT_NEAR(share["y"], 0.356, 0.08);
  EXPECT_NEAR(share["z"], 0.196, 0.08);
}

/// y is worth a thousandth of the variance.
double nearly_x_alone(const Point& p) { return p[0] * p[0] + std::sqrt(0.001) * p[1] * p[1]; }

// Samplers go where x is good; what is left to learn there is y.
TEST(Importance, DoesNotDependOnWhereTheSamplerWent) {
  auto space = Space::Builder().add("x", uniform(-1, 1)).add("y", uniform(-1, 1)).build();
  for (const char* name : {"random", "tpe", "gp", "forest"}) {
    for (const std::uint64_t trials : {40, 100}) {
      auto sampler = make_sampler(name, space, {.seed = 3, .budget = trials});
      std::vector<Point> points;
      std::vector<double> values;
      for (std::uint64_t i = 0; i < trials; ++i) {
        points.push_back(sampler->ask(TrialId{i}).value());
        values.push_back(nearly_x_alone(points.back()));
        sampler->tell(TrialId{i}, Outcome::complete(values.back()));
      }
      EXPECT_LT(shares(parameter_importance(*space, points, values))["y"], 0.04) << name;
    }
  }
}

// Most trials are stopped while their values are still dominated by how short they ran.
TEST(Importance, TellsEarlyStoppedTrialsApart) {
  auto space = Space::Builder().add("x", uniform(-1, 1)).add("y", uniform(-1, 1)).build();
  auto asha = make_scheduler("asha", {.settings = {{"max_t", 27}, {"reduction_factor", 3}}});
  Random random(5);
  std::vector<Point> points;
  std::vector<double> values, budgets;
  for (std::uint64_t i = 0; i < 60; ++i) {
    const Point point = space->sample(random);
    asha->add(TrialId{i});
    for (double time = 1;; time *= 3) {
      points.push_back(point);
      values.push_back(nearly_x_alone(point) + 3 / time);
      budgets.push_back(time);
      if (asha->result(TrialId{i}, {.time = time, .values = {values.back()}}).action ==
          Action::stop)
        break;
    }
    asha->complete(TrialId{i});
  }
  EXPECT_LT(shares(parameter_importance(*space, points, values, budgets))["y"], 0.04);
}

TEST(Importance, SeesConditionsAndRefusesTooLittle) {
  auto space = Space::Builder()
                   .add("momentum", uniform(0, 1))
                   .add("optimizer", choice({"sgd", "adam"}))
                   .condition("momentum", equals("optimizer", "sgd"))
                   .build();
  Random random(5);
  std::vector<Point> points;
  std::vector<double> values;
  for (int i = 0; i < 500; ++i) {
    points.push_back(space->sample(random));
    values.push_back(std::isnan(points.back()[0]) ? 0.5 : points.back()[0]);
  }
  // E[var] over momentum is 1/24; over the optimizer half of E[(u - 0.5)²] / 2 = 1/48.
  auto share = shares(parameter_importance(*space, points, values));
  EXPECT_GT(share["momentum"], share["optimizer"]);
  EXPECT_GT(share["optimizer"], 0.2);
  EXPECT_THROW(
      (void)parameter_importance(*space, std::span(points).first(9), std::span(values).first(9)),
      Error);
  EXPECT_THROW((void)parameter_importance(*space, points, std::span(values).first(9)), Error);
}

TEST(Regret, FallsToTheBestSoFar) {
  auto curve = regret_curve(std::vector<double>{kNan, 3, 5, 2}, Direction::minimize, 1);
  EXPECT_EQ(curve, (std::vector<double>{kInfinity, 2, 2, 1}));
  EXPECT_EQ(regret_curve(std::vector<double>{3, 4}, Direction::maximize, 5),
            (std::vector<double>{2, 1}));
  auto mean = mean_curve(std::vector<std::vector<double>>{{1, 2, 3}, {3, 2}});
  EXPECT_EQ(mean.mean, (std::vector<double>{2, 2}));
  EXPECT_DOUBLE_EQ(mean.standard_error[0], 1);
}

}  // namespace
}  // namespace kolo::search

// What single samplers promise beyond the conformance suite.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"
#include "search/sampler/low_discrepancy.h"
#include "search/sampler/trial_ranking.h"
#include "search/surrogate/effects.h"
#include "search/surrogate/parzen.h"

namespace kolo::search {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Space> cube(std::size_t dimensions) {
  Space::Builder builder;
  for (std::size_t i = 0; i < dimensions; ++i) builder.add("x" + std::to_string(i), uniform(0, 1));
  return builder.build();
}

double sphere(const Point& point) {
  double sum = 0;
  for (const double x : point) sum += (x - 0.3) * (x - 0.3);
  return sum;
}

// The best value after some trials, averaged over seeds.
double mean_best(const std::string& name, const std::shared_ptr<const Space>& space,
                 const std::function<double(const Point&)>& function, std::uint64_t trials,
                 std::map<std::string, Value> settings = {}) {
  double sum = 0;
  constexpr int kSeeds = 5;
  for (int seed = 0; seed < kSeeds; ++seed) {
    auto sampler = make_sampler(
        name, space,
        {.seed = static_cast<std::uint64_t>(seed), .budget = trials, .settings = settings});
    double best = 1e300;
    for (std::uint64_t i = 0; i < trials; ++i) {
      const double value = function(*sampler->ask(TrialId{i}));
      best = std::min(best, value);
      sampler->tell(TrialId{i}, Outcome::complete(value));
    }
    sum += best;
  }
  return sum / kSeeds;
}

TEST(TpeTest, BeatsRandomSearchInBothForms) {
  const double random = mean_best("random", cube(4), sphere, 120);
  EXPECT_LT(mean_best("tpe", cube(4), sphere, 120), random / 4);
  EXPECT_LT(mean_best("tpe", cube(4), sphere, 120, {{"multivariate", false}}), random / 2);
}

TEST(TpeTest, LearnsInsideOfConditions) {
  const auto space = Space::Builder()
                         .add("kind", choice({"a", "b", "c"}))
                         .add("a/x", uniform(0, 1))
                         .add("b/x", uniform(0, 1))
                         .condition("a", equals("kind", "a"))
                         .condition("b", equals("kind", "b"))
                         .build();
  const auto function = [&](const Point& point) {
    if (point[2] == 2) return 1.0;
    return point[2] == 0 ? 0.2 + std::abs(point[0] - 0.7) : std::abs(point[1] - 0.1);
  };
  EXPECT_LT(mean_best("tpe", space, function, 80), mean_best("random", space, function, 80) / 3);
}

TEST(TpeTest, DoesNotRepeatDiscretePoints) {
  const auto space =
      Space::Builder().add("a", integer(0, 4)).add("b", choice({"p", "q", "r"})).build();
  auto sampler = make_sampler("tpe", space);
  std::set<Point> seen;
  for (std::uint64_t i = 0; i < 15; ++i) {
    const auto point = *sampler->ask(TrialId{i});
    EXPECT_TRUE(seen.insert(point).second) << "trial " << i;
    sampler->tell(TrialId{i}, Outcome::complete(point[0]));
  }
}

TEST(LocalSearchTest, ClimbsOverChoices) {
  Space::Builder builder;
  for (int i = 0; i < 6; ++i) builder.add("op" + std::to_string(i), choice({0, 1, 2, 3, 4}));
  const auto function = [](const Point& point) {
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) sum += std::abs(point[i] - static_cast<double>(i % 5));
    return sum + (point[0] == point[1] ? 2 : 0);
  };
  const auto space = builder.build();
  EXPECT_EQ(mean_best("local_search", space, function, 100), 0);
}

TEST(ParzenTest, DensitiesSumToOne) {
  auto axes = std::make_shared<std::vector<ParzenAxis>>(3);
  (*axes)[1] = {ParzenAxis::Form::levels, 5, {}};
  (*axes)[2] = {ParzenAxis::Form::category, 3, {}};
  const float first[] = {0.1F, 0, 2}, second[] = {0.9F, 3, 1};
  const float* rows[] = {first, second};
  const float weights[] = {1, 2}, widths[] = {0.1F, 0.2F, 0.3F};
  Parzen density;
  density.build(axes, rows, weights, 0.5F, widths);
  double sum = 0;
  constexpr int kSteps = 200;
  for (int i = 0; i < kSteps; ++i)
    for (int level = 0; level < 5; ++level)
      for (int category = 0; category < 3; ++category) {
        const float row[] = {(static_cast<float>(i) + 0.5F) / kSteps, static_cast<float>(level),
                             static_cast<float>(category)};
        sum += std::exp(density.log_density(row)) / kSteps;
      }
  EXPECT_NEAR(sum, 1, 2e-3);
  // And samples have the density: the mean of the first axis, by counting.
  Random random(1);
  double mean = 0;
  for (int i = 0; i < 20000; ++i) mean += density.sample(0, density.pick(random), random) / 20000;
  EXPECT_NEAR(mean, (0.11 * 1 + 0.89 * 2 + 0.5 * 0.5) / 3.5, 0.02);
}

TEST(EffectModelTest, FindsIndependentEffects) {
  auto axes = std::make_shared<std::vector<ParzenAxis>>(2);
  for (auto& axis : *axes) axis = {ParzenAxis::Form::category, 3, {}};
  std::vector<std::vector<float>> cells;
  std::vector<const float*> rows;
  std::vector<double> outcomes;
  for (int a = 0; a < 3; ++a)
    for (int b = 0; b < 3; ++b) {
      cells.push_back({static_cast<float>(a), static_cast<float>(b)});
      outcomes.push_back(10 * a - b);
    }
  for (const auto& row : cells) rows.push_back(row.data());
  EffectModel model;
  model.fit(axes, rows, outcomes);
  EXPECT_LT(model.effect(0, 0), model.effect(0, 1));
  EXPECT_LT(model.effect(0, 1), model.effect(0, 2));
  EXPECT_LT(model.effect(1, 2), model.effect(1, 0));
  EXPECT_EQ(model.seen(0, 1), 3U);
}

TEST(LowDiscrepancyTest, EveryPartOfEveryAxisIsVisitedOnce) {
  constexpr std::size_t kPoints = 256, kDimensions = 20;
  const SobolSequence sobol(kDimensions, 9);
  for (std::size_t j = 0; j < kDimensions; ++j) {
    std::set<int> cells;
    for (std::size_t i = 0; i < kPoints; ++i)
      cells.insert(static_cast<int>(sobol.at(i, j) * kPoints));
    EXPECT_EQ(cells.size(), kPoints) << "dimension " << j;
  }
  const HaltonSequence halton(3, 9);
  const std::size_t bases[] = {2, 3, 5}, powers[] = {256, 243, 125};
  for (std::size_t j = 0; j < 3; ++j) {
    std::set<int> cells;
    for (std::size_t i = 0; i < powers[j]; ++i)
      cells.insert(static_cast<int>(halton.at(i, j) * static_cast<double>(powers[j]) + 1e-9));
    EXPECT_EQ(cells.size(), powers[j]) << "base " << bases[j];
  }
}

TEST(DesignTest, LatinHypercubesTakeEachPartOnce) {
  auto sampler = make_sampler("lhs", cube(3), {.settings = {{"n_points", 10}}});
  for (int block = 0; block < 2; ++block) {
    std::set<int> parts[3];
    for (int i = 0; i < 10; ++i) {
      const auto point = *sampler->ask(TrialId{static_cast<std::uint64_t>(10 * block + i)});
      for (std::size_t j = 0; j < 3; ++j) parts[j].insert(static_cast<int>(point[j] * 10));
    }
    for (const auto& part : parts) EXPECT_EQ(part.size(), 10U);
  }
}

TEST(EvolutionTest, ChildrenDifferInOneParameter) {
  Space::Builder builder;
  for (int i = 0; i < 5; ++i) builder.add("op" + std::to_string(i), choice({0, 1, 2, 3}));
  auto sampler = make_sampler("evolution", builder.build(), {.settings = {{"population", 5}}});
  std::vector<Point> before;
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto point = *sampler->ask(TrialId{i});
    if (i >= 5) {
      std::size_t nearest = 99;
      for (const Point& parent : before) {
        std::size_t changes = 0;
        for (std::size_t j = 0; j < 5; ++j) changes += point[j] != parent[j];
        nearest = std::min(nearest, changes);
      }
      EXPECT_LE(nearest, 1U);
    }
    before.push_back(point);
    sampler->tell(TrialId{i}, Outcome::complete(point[0]));
  }
}

TEST(Nsga2Test, SpreadsOverTheFront) {
  auto sampler = make_sampler(
      "nsga2", cube(2),
      {.directions = {Direction::minimize, Direction::minimize}, .settings = {{"population", 20}}});
  int near = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const auto point = *sampler->ask(TrialId{i});
    const double a = point[0] + 5 * point[1], b = 1 - point[0] + 5 * point[1];
    sampler->tell(TrialId{i}, Outcome::complete({a, b}));
    near += i >= 250 && point[1] < 0.05;
  }
  EXPECT_GT(near, 25);
}

TEST(BohbTest, LearnsFromTheLargestBudgetWithEnoughReports) {
  auto sampler = make_sampler("bohb", cube(2), {.settings = {{"random_fraction", 0.0}}});
  for (std::uint64_t i = 0; i < 40; ++i) {
    const auto point = *sampler->ask(TrialId{i});
    // A small budget that misleads, and a large one that does not.
    sampler->report(TrialId{i}, 1, std::vector{-sphere(point)});
    sampler->report(TrialId{i}, 9, std::vector{sphere(point)});
    sampler->tell(TrialId{i}, Outcome::complete(sphere(point)));
  }
  double sum = 0;
  for (std::uint64_t i = 40; i < 60; ++i) sum += sphere(*sampler->ask(TrialId{i})) / 20;
  EXPECT_LT(sum, 0.06);  // of the prior it is 0.25
}

TEST(ConcurrencyLimiterTest, LimitsAndHandsBatchesOn) {
  auto sampler =
      make_sampler("concurrency_limiter", cube(1),
                   {.settings = {{"max_concurrent", 2}, {"batch", true}, {"sampler", "tpe"}}});
  EXPECT_TRUE(sampler->ask(TrialId{0}));
  EXPECT_TRUE(sampler->ask(TrialId{1}));
  EXPECT_FALSE(sampler->ask(TrialId{2}));
  sampler->tell(TrialId{1}, Outcome::complete(1.0));
  EXPECT_FALSE(sampler->ask(TrialId{2}));
  sampler->tell(TrialId{0}, Outcome::complete(1.0));
  EXPECT_TRUE(sampler->ask(TrialId{2}));
}

TEST(RepeaterTest, AsksForTheSamePointSeveralTimes) {
  auto sampler =
      make_sampler("repeater", cube(1), {.settings = {{"repeat", 3}, {"sampler", "random"}}});
  std::vector<Point> points;
  for (std::uint64_t i = 0; i < 6; ++i) points.push_back(*sampler->ask(TrialId{i}));
  EXPECT_EQ(points[0], points[2]);
  EXPECT_EQ(points[3], points[5]);
  EXPECT_NE(points[0], points[3]);
}

TEST(AutoTest, PicksByWhatIsAskedAndSaysWhy) {
  const auto said = [](const std::shared_ptr<const Space>& space, std::size_t objectives,
                       std::optional<std::uint64_t> budget) {
    return make_sampler("auto", space,
                        {.directions = std::vector<Direction>(objectives), .budget = budget})
        ->explain();
  };
  EXPECT_THAT(said(cube(3), 1, 100), HasSubstr("gp"));
  EXPECT_THAT(said(cube(3), 1, 50'000), HasSubstr("cmaes"));
  EXPECT_THAT(said(cube(3), 2, 100), HasSubstr("tpe"));
  EXPECT_THAT(said(cube(3), 2, 10'000), HasSubstr("nsga2"));
  EXPECT_THAT(said(cube(100), 1, 100), HasSubstr("forest"));
  EXPECT_THAT(said(Space::Builder().add("a", choice({1, 2})).build(), 1, {}), HasSubstr("forest"));
}

TEST(TrialRankingTest, OrdersEndingsFromBestToWorst) {
  std::vector<Trial> trials(6);
  trials[0] = {.id = {}, .point = {}, .state = TrialState::failed, .values = {}};
  trials[1] = {.id = {}, .point = {}, .state = TrialState::complete, .values = {2}};
  trials[2] = {.id = {},
               .point = {},
               .state = TrialState::pruned,
               .values = {0},
               .violation = 0,
               .budget = 3};
  trials[3] = {
      .id = {}, .point = {}, .state = TrialState::complete, .values = {-9}, .violation = 1};
  trials[4] = {.id = {}, .point = {}, .state = TrialState::complete, .values = {1}};
  trials[5] = {.id = {},
               .point = {},
               .state = TrialState::pruned,
               .values = {9},
               .violation = 0,
               .budget = 5};
  TrialRanking ranking(1);
  for (std::size_t i = 0; i < trials.size(); ++i) ranking.add(trials, i);
  EXPECT_THAT(ranking.best(trials, 6), testing::ElementsAre(4, 1, 5, 2, 3, 0));
}

}  // namespace
}  // namespace kolo::search

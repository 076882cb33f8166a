#include "search/acquisition/acquisition.h"

#include <gtest/gtest.h>

#include <cmath>

#include "search/acquisition/elite_steps.h"
#include "search/surrogate/normal.h"
#include "search/surrogate/output_warp.h"

namespace kolo::search {
namespace {

TEST(Acquisition, LogEiAgreesWithEiWhereEiHasBits) {
  Acquisition ei{.kind = Acquisition::Kind::ei, .best = 0.3};
  Acquisition log_ei{.kind = Acquisition::Kind::log_ei, .best = 0.3};
  for (double mean = -3; mean < 4; mean += 0.25)
    for (const double deviation : {0.2, 1.0, 3.0}) {
      const double value = ei.score(mean, deviation);
      if (value < 1e-12) continue;
      EXPECT_NEAR(log_ei.score(mean, deviation), std::log(value), 1e-6) << mean << " " << deviation;
    }
}

TEST(Acquisition, LogEiFallsSteadilyFarFromAnyImprovement) {
  const Acquisition log_ei{.kind = Acquisition::Kind::log_ei, .best = 0.0};
  double last = log_ei.score(1.0, 1.0);
  for (double mean = 1.5; mean < 1e6; mean *= 1.2) {
    const double score = log_ei.score(mean, 1.0);
    ASSERT_TRUE(std::isfinite(score));
    ASSERT_LT(score, last) << mean;
    last = score;
  }
}

TEST(Acquisition, SlopesMatchFiniteDifferences) {
  for (const auto kind : {Acquisition::Kind::log_ei, Acquisition::Kind::ei, Acquisition::Kind::pi,
                          Acquisition::Kind::ucb}) {
    const Acquisition acquisition{.kind = kind, .best = 0.1, .kappa = 1.5, .xi = 0.05};
    for (const double mean : {-8.5, -1.0, 0.2, 2.0, 9.0, 14.0})
      for (const double deviation : {0.5, 1.0, 2.5}) {
        const double h = 1e-6;
        const auto slope = acquisition.slope(mean, deviation);
        const double by_mean =
            (acquisition.score(mean + h, deviation) - acquisition.score(mean - h, deviation)) /
            (2 * h);
        const double by_deviation =
            (acquisition.score(mean, deviation + h) - acquisition.score(mean, deviation - h)) /
            (2 * h);
        EXPECT_NEAR(slope.by_mean, by_mean, 1e-4 * (1 + std::abs(by_mean)))
            << static_cast<int>(kind) << " " << mean << " " << deviation;
        EXPECT_NEAR(slope.by_deviation, by_deviation, 1e-4 * (1 + std::abs(by_deviation)))
            << static_cast<int>(kind) << " " << mean << " " << deviation;
      }
  }
}

TEST(Acquisition, MillsRatioIsContinuousWhereItsFormulaChanges) {
  EXPECT_NEAR(mills_ratio(-19.9999), mills_ratio(-20.0001), 1e-6);
  EXPECT_NEAR(mills_ratio(-20.0001) * 20.0001, 1.0 - 1.0 / 400.0, 1e-4);
}

TEST(ExplorationSchedule, FollowsItsFormulas) {
  ExplorationSchedule schedule{.initial = 2.0, .final = 0.02, .period = 10};
  EXPECT_DOUBLE_EQ(schedule.at(0, 3), 2.0);
  EXPECT_NEAR(schedule.at(5, 3), 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(schedule.at(10, 3), 2.0);
  schedule.kind = ExplorationSchedule::Kind::constant;
  EXPECT_DOUBLE_EQ(schedule.at(123, 3), 2.0);
  schedule.kind = ExplorationSchedule::Kind::bandit;
  EXPECT_LT(schedule.at(0, 3), schedule.at(100, 3));
}

TEST(OutputWarp, KeepsTheOrderAndStandardises) {
  Eigen::VectorXd values(7);
  values << 3.0, -1.0, 1e9, 0.5, 0.5, 40.0, 2.0;
  const Eigen::VectorXd warped = warp_outputs(values);
  EXPECT_NEAR(warped.mean(), 0.0, 1e-9);
  EXPECT_NEAR(warped.squaredNorm() / 7.0, 1.0, 1e-9);
  for (Eigen::Index i = 0; i < 7; ++i)
    for (Eigen::Index j = 0; j < 7; ++j) {
      if (values[i] < values[j]) {
        EXPECT_LT(warped[i], warped[j]);
      }
      if (values[i] == values[j]) {
        EXPECT_DOUBLE_EQ(warped[i], warped[j]);
      }
    }
  EXPECT_LT(warped.maxCoeff(), 4.0);  // the heavy tail is gone
}

TEST(OutputWarp, DoesNotBlowUpThePlateauAroundAHole) {
  Eigen::VectorXd values(9);
  values << 21.0, 21.1, 21.2, 21.3, 21.4, 20.9, 20.8, 12.0, 5.0;
  const Eigen::VectorXd warped = warp_outputs(values);
  // The ripples above the median are small beside the way down to the best.
  EXPECT_LT(warped[4] - warped[0], 0.5 * (warped[0] - warped[8]));
}

TEST(OutputWarp, FailuresAreAsBadAsTheWorst) {
  Eigen::VectorXd values(5);
  values << 1.0, std::nan(""), 2.0, 5.0, 0.0;
  const Eigen::VectorXd warped = warp_outputs(values);
  EXPECT_DOUBLE_EQ(warped[1], warped[3]);
  EXPECT_EQ(warp_outputs(Eigen::VectorXd::Constant(4, std::nan(""))), Eigen::VectorXd::Zero(4));
  EXPECT_EQ(warp_outputs(Eigen::VectorXd::Constant(4, 2.0)), Eigen::VectorXd::Zero(4));
  values << 1e308, -1e308, 0.0, 1e300, 5.0;
  EXPECT_TRUE(warp_outputs(values).allFinite());
}

TEST(EliteSteps, HaveTheCovarianceOfTheElite) {
  const auto space = Space::Builder()
                         .add("a", uniform(0, 1))
                         .add("b", uniform(0, 1))
                         .add("c", choice({1, 2}))
                         .build();
  const Moves moves(space);
  // Along the diagonal, far closer across it.
  const std::vector<Point> elite = {
      {0.40, 0.41, 0}, {0.45, 0.44, 0}, {0.5, 0.5, 1}, {0.55, 0.54, 0}};
  const EliteSteps steps(moves, elite);
  ASSERT_TRUE(steps.any());
  Random random(5);
  double along = 0, across = 0, centre = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const Point point = steps.vary(elite[0], 0.5, true, random);
    ASSERT_TRUE(space->allows(point));
    const double a = point[0] - 0.475, b = point[1] - 0.4725;
    centre += (a + b) / kDraws;
    along += (a + b) * (a + b) / 2 / kDraws;
    across += (a - b) * (a - b) / 2 / kDraws;
  }
  double wanted = 0;
  for (const Point& point : elite)
    wanted += 0.25 * std::pow(point[0] + point[1] - 0.9475, 2) / 2 / 4;
  EXPECT_NEAR(centre, 0.0, 0.005);
  EXPECT_NEAR(along / wanted, 1.0, 0.15);
  EXPECT_LT(across, 0.05 * along);
  EXPECT_FALSE(EliteSteps(moves, std::span(elite).first(1)).any());
}

}  // namespace
}  // namespace kolo::search

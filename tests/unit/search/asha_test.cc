// ASHA, in both forms, and successive halving, against vectors worked out by hand or by definition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search/scheduler.h"
#include "search/scheduler/ordered_values.h"

namespace kolo::search {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TrialId id(std::uint64_t number) { return TrialId{number}; }

Decision report(Scheduler& scheduler, std::uint64_t trial, double time, double value) {
  return scheduler.result(id(trial), {.time = time, .values = {value}});
}

TEST(OrderedValues, AgreesWithSorting) {
  Random random(1);
  OrderedValues ordered;
  std::vector<double> sorted;
  for (int i = 0; i < 5000; ++i) {
    double value = static_cast<double>(random.below(700));
    EXPECT_EQ(ordered.count_below(value),
              std::lower_bound(sorted.begin(), sorted.end(), value) - sorted.begin());
    ordered.insert(value);
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), value), value);
    if (i % 97 != 0) continue;
    for (std::size_t k = 0; k < sorted.size(); k += 1 + sorted.size() / 7)
      EXPECT_EQ(ordered.at(k), sorted[k]);
    EXPECT_EQ(ordered.quantile(1), sorted.back());
  }
}

TEST(OrderedValues, InterpolatesAsNumpy) {
  OrderedValues ordered;
  for (double value : {4.0, 1.0, 3.0, 2.0}) ordered.insert(value);
  EXPECT_DOUBLE_EQ(ordered.quantile(0.25), 1.75);
  EXPECT_DOUBLE_EQ(ordered.quantile(0.5), 2.5);
}

SchedulerOptions maximize(std::map<std::string, Value> settings = {}) {
  return {.directions = {Direction::maximize}, .settings = std::move(settings)};
}

TEST(Asha, StatusIsForPeople) {
  auto asha = make_scheduler("asha", maximize({{"max_t", 9}, {"reduction_factor", 3}}));
  for (std::uint64_t i = 0; i < 2; ++i) {
    asha->add(id(i));
    report(*asha, i, 1, 1.0 / 3);
  }
  EXPECT_EQ(asha->status(),
            "asha\nbracket 0: 1 (2 trials, cut-off 0.33333) 3 (0 trials) 9 (0 trials)");
}

TEST(Asha, CutoffIsThatOfThoseBefore) {
  auto asha = make_scheduler("asha", maximize());
  for (std::uint64_t i = 0; i < 5; ++i) asha->add(id(i));
  // Nobody before: no cut-off, whatever the value.
  auto first = report(*asha, 0, 1, 10);
  EXPECT_EQ(first.action, Action::proceed);
  EXPECT_FALSE(first.reason.cutoff);
  // Percentile 75 of {10}.
  auto second = report(*asha, 1, 1, 9);
  EXPECT_EQ(second.action, Action::stop);
  EXPECT_EQ(second.reason.rule, "rung");
  EXPECT_EQ(second.reason.rung, 0U);
  EXPECT_EQ(second.reason.milestone, 1.0);
  EXPECT_EQ(second.reason.value, 9.0);
  EXPECT_EQ(second.reason.cutoff, 10.0);
  EXPECT_EQ(second.reason.rank, 2U);
  EXPECT_EQ(second.reason.among, 2U);
  // Of {9, 10}: 9.75. What was stopped was recorded too.
  auto third = report(*asha, 2, 1, 9.8);
  EXPECT_EQ(third.action, Action::proceed);
  EXPECT_DOUBLE_EQ(*third.reason.cutoff, 9.75);
  // Equal to the cut-off is good enough.
  auto fourth = report(*asha, 3, 1, 9.9);
  EXPECT_EQ(fourth.action, Action::proceed);
  EXPECT_DOUBLE_EQ(*fourth.reason.cutoff, 9.9);
}

TEST(Asha, MinimizingIsTheMirrorImage) {
  Random random(2);
  auto up = make_scheduler("asha", maximize({{"max_t", 64}, {"reduction_factor", 2}}));
  auto down = make_scheduler("asha", {.settings = {{"max_t", 64}, {"reduction_factor", 2}}});
  for (std::uint64_t i = 0; i < 200; ++i) {
    up->add(id(i));
    down->add(id(i));
  }
  int stops = 0;
  for (int i = 0; i < 5000; ++i) {
    std::uint64_t trial = random.below(200);
    double time = 1 + static_cast<double>(random.below(70));
    double value = random.normal();
    auto a = report(*up, trial, time, value);
    auto b = report(*down, trial, time, -value);
    ASSERT_EQ(a.action, b.action);
    ASSERT_DOUBLE_EQ(a.reason.cutoff.value_or(0), -b.reason.cutoff.value_or(0));
    stops += a.action == Action::stop ? 1 : 0;
  }
  EXPECT_GT(stops, 100);
}

TEST(Asha, MilestonesOfTheDefaults) {
  auto asha = make_scheduler("asha", maximize());
  asha->add(id(0));
  std::vector<double> seen;
  for (int t = 1; t < 100; ++t) {
    auto decision = report(*asha, 0, t, 1);
    ASSERT_EQ(decision.action, Action::proceed);
    if (decision.reason.rule == "rung") seen.push_back(*decision.reason.milestone);
  }
  EXPECT_EQ(seen, (std::vector<double>{1, 4, 16, 64}));
  auto last = report(*asha, 0, 100, 1);
  EXPECT_EQ(last.action, Action::stop);
  EXPECT_EQ(last.reason.rule, "max_t");
}

TEST(Asha, TakesTheHighestRungNotYetRecorded) {
  auto asha = make_scheduler("asha", maximize());
  asha->add(id(0));
  EXPECT_EQ(report(*asha, 0, 20, 1).reason.milestone, 16.0);
  EXPECT_EQ(report(*asha, 0, 21, 1).reason.milestone, 4.0);
  EXPECT_EQ(report(*asha, 0, 22, 1).reason.milestone, 1.0);
  EXPECT_EQ(report(*asha, 0, 23, 1).reason.rule, "between rungs");
}

TEST(Asha, LastTrialsMayGoOn) {
  auto asha = make_scheduler("asha", maximize({{"stop_last_trials", false}}));
  asha->add(id(0));
  EXPECT_EQ(report(*asha, 0, 100, 1).action, Action::proceed);
}

TEST(Asha, InOrderATrialIsJudgedByTheOlderOnesAlone) {
  auto asha = make_scheduler("asha", maximize({{"in_order", true}, {"reduction_factor", 2}}));
  for (std::uint64_t i = 0; i < 4; ++i) asha->add(id(i));
  EXPECT_EQ(report(*asha, 2, 1, 5).action, Action::pause);  // 0 and 1 are not there
  EXPECT_EQ(report(*asha, 1, 1, 9).action, Action::pause);
  const std::vector<TrialId> waiting{id(1), id(2), id(3)};
  EXPECT_EQ(asha->next(waiting), id(3));  // the only one that may run
  EXPECT_TRUE(asha->take_decisions().empty());
  EXPECT_EQ(report(*asha, 0, 1, 4).action, Action::proceed);
  const auto decided = asha->take_decisions();
  ASSERT_EQ(decided.size(), 2U);
  EXPECT_EQ(decided[0].first, id(1));
  EXPECT_EQ(decided[0].second.action, Action::proceed);  // better than 4
  EXPECT_EQ(decided[1].first, id(2));
  EXPECT_EQ(decided[1].second.action, Action::stop);  // worse than 9
  EXPECT_EQ(report(*asha, 3, 1, 10).action, Action::proceed);
}

TEST(Asha, InOrderNobodyWaitsForATrialThatHasEnded) {
  auto asha = make_scheduler("asha", maximize({{"in_order", true}}));
  for (std::uint64_t i = 0; i < 2; ++i) asha->add(id(i));
  EXPECT_EQ(report(*asha, 1, 1, 5).action, Action::pause);
  asha->fail(id(0));
  const auto decided = asha->take_decisions();
  ASSERT_EQ(decided.size(), 1U);
  EXPECT_EQ(decided[0].second.action, Action::proceed);
}

TEST(Asha, BracketsAreDrawnWithSoftmaxWeights) {
  auto asha = make_scheduler("asha", maximize({{"brackets", 3}}));
  std::map<std::uint32_t, int> count;
  for (std::uint64_t i = 0; i < 4000; ++i) {
    asha->add(id(i));
    ++count[*report(*asha, i, 100, 1).reason.bracket];
  }
  // Rungs 4, 3, 2: e^0 : e^-1 : e^-2.
  EXPECT_NEAR(count[0] / 4000.0, 0.665, 0.03);
  EXPECT_NEAR(count[1] / 4000.0, 0.245, 0.03);
  EXPECT_NEAR(count[2] / 4000.0, 0.090, 0.02);
}

TEST(Asha, WhatIsNotFiniteIsWorseThanAnything) {
  auto asha = make_scheduler("asha", maximize());
  for (std::uint64_t i = 0; i < 4; ++i) asha->add(id(i));
  EXPECT_EQ(report(*asha, 0, 1, kNan).action, Action::proceed);  // nothing to compare with
  EXPECT_EQ(report(*asha, 1, 1, -1e300).action, Action::proceed);
  EXPECT_EQ(report(*asha, 2, 1, std::numeric_limits<double>::infinity()).action, Action::stop);
  auto broken = report(*asha, 3, 1, kNan);
  EXPECT_EQ(broken.action, Action::stop);
  EXPECT_EQ(broken.reason.rank, 2U);
  EXPECT_EQ(broken.reason.cutoff, -1e300);
}

TEST(Asha, SeveralObjectivesGoByFront) {
  auto asha = make_scheduler("asha", {.directions = {Direction::minimize, Direction::maximize},
                                      .settings = {{"reduction_factor", 2}}});
  auto both = [&](std::uint64_t trial, double loss, double speed) {
    asha->add(id(trial));
    return asha->result(id(trial), {.time = 1, .values = {loss, speed}});
  };
  EXPECT_EQ(both(0, 1, 10).action, Action::proceed);
  EXPECT_EQ(both(1, 2, 20).action, Action::proceed);  // neither dominates
  auto worse = both(2, 3, 5);
  EXPECT_EQ(worse.action, Action::stop);
  EXPECT_EQ(worse.reason.value, 1.0);
  EXPECT_EQ(worse.reason.cutoff, 0.0);
  EXPECT_EQ(worse.reason.rank, 3U);
  EXPECT_EQ(both(3, 0.5, 1).action, Action::proceed);  // best in one of them
  EXPECT_EQ(both(4, 0.5, kNan).action, Action::stop);
}

TEST(Asha, RefusesSettingsThatMakeNoSense) {
  EXPECT_THROW((void)make_scheduler("asha", maximize({{"max_t", 0}})), Error);
  EXPECT_THROW((void)make_scheduler("asha", maximize({{"reduction_factor", 1}})), Error);
  EXPECT_THROW((void)make_scheduler("asha", maximize({{"grace_period", 200}})), Error);
  EXPECT_THROW((void)make_scheduler("asha", maximize({{"brackets", 0}})), Error);
  try {
    (void)make_scheduler("asha", maximize({{"maxt", 5}}));
    FAIL() << "an unknown setting was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
    EXPECT_NE(error.message().find("unknown setting 'maxt'; did you mean 'max_t'? known: max_t, "),
              std::string::npos)
        << error.what();
  }
}

TEST(PromotingAsha, PausesAndPromotesWhenEnoughAreWorse) {
  auto asha = make_scheduler("asha_promoting", maximize({{"reduction_factor", 3}, {"max_t", 27}}));
  for (std::uint64_t i = 0; i < 4; ++i) asha->add(id(i));
  EXPECT_EQ(report(*asha, 0, 1, 5).action, Action::pause);
  EXPECT_EQ(report(*asha, 1, 1, 7).action, Action::pause);
  std::vector<TrialId> waiting{id(0), id(1), id(3)};
  EXPECT_EQ(asha->next(waiting), id(3));  // 2 // 3 = 0 places: a new one
  auto third = report(*asha, 2, 1, 6);
  EXPECT_EQ(third.action, Action::pause);
  EXPECT_EQ(third.reason.rank, 2U);
  EXPECT_EQ(third.reason.cutoff, 7.0);
  EXPECT_EQ(asha->next(waiting), id(1));  // one place: the best, before any new one
  EXPECT_EQ(asha->next(std::vector<TrialId>{id(0), id(2)}), std::nullopt);
  // Promoted, it runs to the next rung.
  EXPECT_EQ(report(*asha, 1, 2, 7).action, Action::proceed);
  EXPECT_EQ(report(*asha, 1, 3, 7).action, Action::pause);
  // The best of all goes on at once.
  EXPECT_EQ(report(*asha, 3, 1, 9).action, Action::proceed);
  EXPECT_EQ(report(*asha, 3, 27, 9).action, Action::stop);
}

TEST(SuccessiveHalving, StopsAtTheRungsOfTheReference) {
  // y grows by a constant x per step; DeepHyper observes exactly these budgets.
  auto halving = make_scheduler("successive_halving", maximize({{"max_steps", 50}}));
  Random random(42);
  std::vector<double> budgets;
  for (std::uint64_t trial = 0; trial < 30; ++trial) {
    halving->add(id(trial));
    double x = random.uniform(-10, 10);
    for (int step = 1; step <= 50; ++step) {
      if (report(*halving, trial, step, x * step).action != Action::stop) continue;
      budgets.push_back(step);
      break;
    }
  }
  ASSERT_EQ(budgets.size(), 30U);
  for (double budget : budgets)
    EXPECT_TRUE(budget == 1 || budget == 3 || budget == 9 || budget == 27 || budget == 50)
        << budget;
  EXPECT_GE(std::count(budgets.begin(), budgets.end(), 1.0), 10);
  EXPECT_GE(std::count(budgets.begin(), budgets.end(), 50.0), 1);
}

TEST(SuccessiveHalving, KeepsTheBestThirdOfThoseThere) {
  auto halving = make_scheduler("successive_halving", maximize());
  auto at_first_rung = [&](std::uint64_t trial, double value) {
    halving->add(id(trial));
    return report(*halving, trial, 1, value).action;
  };
  EXPECT_EQ(at_first_rung(0, 1), Action::proceed);  // 1 of 1
  EXPECT_EQ(at_first_rung(1, 0), Action::stop);     // max(1, 2 // 3) = 1
  EXPECT_EQ(at_first_rung(2, 2), Action::proceed);
  EXPECT_EQ(at_first_rung(3, 1.5), Action::stop);
  EXPECT_EQ(at_first_rung(4, 1.5), Action::stop);
  EXPECT_EQ(at_first_rung(5, 1.9), Action::proceed);  // 6 // 3 = 2 places
}

TEST(SuccessiveHalving, WaitsForCompetitorsAndCompletedOnes) {
  auto halving = make_scheduler("successive_halving",
                                maximize({{"min_competing", 2}, {"min_fully_completed", 1}}));
  for (std::uint64_t i = 0; i < 5; ++i) halving->add(id(i));
  for (std::uint64_t i = 0; i < 4; ++i)
    EXPECT_EQ(report(*halving, i, 1, -static_cast<double>(i)).action, Action::proceed) << i;
  EXPECT_EQ(report(*halving, 0, 100, 0).action, Action::stop);  // max_steps
  EXPECT_EQ(report(*halving, 4, 1, -4).action, Action::stop);
}

// As in Tune: there are four rungs, so the trials of brackets 4 to 8 are never judged.
TEST(Asha, MayHaveMoreBracketsThanRungs) {
  auto asha = make_scheduler("asha", maximize({{"brackets", 9}}));
  int unjudged = 0;
  for (std::uint64_t i = 0; i < 1000; ++i) {
    asha->add(id(i));
    unjudged += report(*asha, i, 99, 0).reason.rule == "between rungs" ? 1 : 0;
  }
  // softmax(4, 3, 2, 1, 0, 0, 0, 0, 0): 0.0553 of them.
  EXPECT_NEAR(unjudged, 55, 25);
}

}  // namespace
}  // namespace kolo::search

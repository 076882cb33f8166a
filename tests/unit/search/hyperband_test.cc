// HyperBand's arithmetic and its halvings; the median rule.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "kolo/search/scheduler.h"

namespace kolo::search {
namespace {

TrialId id(std::uint64_t number) { return TrialId{number}; }

Decision report(Scheduler& scheduler, std::uint64_t trial, double time, double value,
                bool others_wait = false) {
  return scheduler.result(id(trial), {.time = time, .values = {value}, .others_wait = others_wait});
}

SchedulerOptions maximize(std::map<std::string, Value> settings = {}) {
  return {.directions = {Direction::maximize}, .settings = std::move(settings)};
}

TEST(HyperBand, BracketsOfTheDefaults) {
  auto band = make_scheduler("hyperband", maximize());
  std::map<std::uint32_t, int> sizes;
  std::map<std::uint32_t, double> milestones;
  for (std::uint64_t i = 0; i < 143; ++i) band->add(id(i));
  band->add(id(143));  // the next band
  for (std::uint64_t i = 0; i < 144; ++i) {
    auto reason = report(*band, i, 0.5, 0).reason;
    ++sizes[*reason.bracket];
    milestones[*reason.bracket] = *reason.milestone;
  }
  EXPECT_EQ(sizes,
            (std::map<std::uint32_t, int>{{0, 5}, {1, 8}, {2, 15}, {3, 34}, {4, 81}, {5, 1}}));
  EXPECT_EQ(milestones,
            (std::map<std::uint32_t, double>{{0, 81}, {1, 27}, {2, 9}, {3, 3}, {4, 1}, {5, 81}}));
}

TEST(HyperBand, ForBohbTheWidestBracketComesFirst) {
  auto band = make_scheduler("hb_bohb", maximize());
  for (std::uint64_t i = 0; i < 82; ++i) band->add(id(i));
  EXPECT_EQ(report(*band, 0, 0.5, 0).reason.milestone, 1.0);
  EXPECT_EQ(report(*band, 80, 0.5, 0).reason.bracket, 0U);
  EXPECT_EQ(report(*band, 81, 0.5, 0).reason.milestone, 3.0);
}

/// Runs all trials of one bracket in turn; the value of a trial is its number.
TEST(HyperBand, HalvesTogetherUpToTheRightLastRung) {
  auto band = make_scheduler("hb_bohb", maximize({{"max_t", 9}, {"reduction_factor", 3}}));
  std::set<std::uint64_t> live;
  for (std::uint64_t i = 0; i < 9; ++i) {
    band->add(id(i));
    live.insert(i);
  }
  std::vector<double> rungs{1, 3, 9};
  std::vector<std::size_t> survivors{3, 1, 0};
  for (std::size_t rung = 0; rung < rungs.size(); ++rung) {
    std::size_t left = live.size();
    std::set<std::uint64_t> next = live;
    for (std::uint64_t trial : live) {
      auto decision = report(*band, trial, rungs[rung], static_cast<double>(trial));
      if (rungs[rung] == 9) {
        EXPECT_EQ(decision.action, Action::stop);
        EXPECT_EQ(decision.reason.rule, "max_t");
        next.erase(trial);
      } else if (--left > 0) {
        EXPECT_EQ(decision.action, Action::pause);
        EXPECT_FALSE(band->next(std::vector{id(trial)}));  // waits for the others
      } else {
        EXPECT_EQ(decision.action, Action::proceed);  // the last one is the best one
        EXPECT_EQ(decision.reason.rank, 1U);
      }
    }
    for (auto& [trial, decision] : band->take_decisions()) {
      if (decision.action == Action::stop) next.erase(static_cast<std::uint64_t>(trial));
      EXPECT_EQ(decision.reason.rule, "halving");
      EXPECT_TRUE(decision.action == Action::stop || decision.action == Action::proceed);
    }
    live = next;
    EXPECT_EQ(live.size(), survivors[rung]);
    EXPECT_TRUE(live.empty() || *live.begin() == 9 - survivors[rung]);
  }
  EXPECT_TRUE(band->take_decisions().empty());
}

TEST(HyperBand, AFailureLeavesItsBracketAndMayBeTheLastOneWaitedFor) {
  auto band = make_scheduler("hb_bohb", maximize({{"max_t", 3}, {"reduction_factor", 3}}));
  for (std::uint64_t i = 0; i < 3; ++i) band->add(id(i));
  EXPECT_EQ(report(*band, 0, 1, 5).action, Action::pause);
  EXPECT_EQ(report(*band, 1, 1, 6).action, Action::pause);
  band->fail(id(2));
  auto decisions = band->take_decisions();
  ASSERT_EQ(decisions.size(), 2U);
  EXPECT_EQ(decisions[0].first, id(1));
  EXPECT_EQ(decisions[0].second.action, Action::proceed);
  EXPECT_EQ(decisions[1].first, id(0));
  EXPECT_EQ(decisions[1].second.action, Action::stop);
  EXPECT_EQ(decisions[1].second.reason.cutoff, 6.0);
}

TEST(HyperBand, AnUnfilledBracketWaitsUntilNothingElseCanRun) {
  auto band = make_scheduler("hb_bohb", maximize({{"max_t", 9}}));
  for (std::uint64_t i = 0; i < 4; ++i) {
    band->add(id(i));
    EXPECT_EQ(report(*band, i, 1, static_cast<double>(i)).action, Action::pause);
  }
  EXPECT_TRUE(band->take_decisions().empty());
  band->stalled();
  auto decisions = band->take_decisions();
  ASSERT_EQ(decisions.size(), 4U);  // ceil(4 / 3) = 2 go on
  EXPECT_EQ(decisions[1].second.action, Action::proceed);
  EXPECT_EQ(decisions[2].second.action, Action::stop);
  band->add(id(9));  // opens another bracket
  EXPECT_EQ(report(*band, 9, 0.5, 0).reason.bracket, 1U);
}

// 20 lies between 9 and 27: a bracket of 27 trials would begin below one iteration.
TEST(HyperBand, AMaximumThatIsNoPowerHasTheBracketsOfTune) {
  for (const std::string name : {"hyperband", "hb_bohb"}) {
    auto band = make_scheduler(name, maximize({{"max_t", 20}}));
    std::map<double, int> sizes;
    for (std::uint64_t i = 0; i < 22; ++i) band->add(id(i));
    for (std::uint64_t i = 0; i < 22; ++i) ++sizes[*report(*band, i, 0.5, 0).reason.milestone];
    EXPECT_EQ(sizes, (std::map<double, int>{{20, 4}, {6, 6}, {2, 12}})) << name;
  }
}

TEST(HyperBand, WhoeverJumpsPastTheEndIsHalvedToo) {
  auto band = make_scheduler(
      "hb_bohb", maximize({{"max_t", 9}, {"reduction_factor", 3}, {"stop_last_trials", false}}));
  for (std::uint64_t i = 0; i < 9; ++i) band->add(id(i));
  for (std::uint64_t i = 0; i < 8; ++i)
    EXPECT_EQ(report(*band, i, 10, static_cast<double>(i)).action, Action::pause);
  EXPECT_EQ(report(*band, 8, 10, 8).action, Action::proceed);  // the best, beyond every milestone
  std::map<std::uint64_t, Action> last;
  for (const auto& [trial, decision] : band->take_decisions())
    last[static_cast<std::uint64_t>(trial)] = decision.action;
  EXPECT_EQ(last.size(), 8U);
  for (const auto& [trial, action] : last) EXPECT_EQ(action, Action::stop) << trial;
  EXPECT_EQ(report(*band, 8, 11, 8).action, Action::proceed);  // goes on for as long as it likes
}

TEST(HyperBand, RunsTheBracketThatIsLeastFar) {
  auto band = make_scheduler("hyperband", maximize({{"max_t", 3}}));
  for (std::uint64_t i = 0; i < 5; ++i) band->add(id(i));  // s = 0: 2 trials, s = 1: 3 trials
  report(*band, 0, 2, 1);
  EXPECT_EQ(band->next(std::vector{id(0), id(2)}), id(2));
}

TEST(MedianStopping, StopsTheWorseHalf) {
  auto rule = make_scheduler("median_stopping_rule",
                             maximize({{"grace_period", 1}, {"min_samples_required", 2}}));
  for (std::uint64_t i = 0; i < 4; ++i) rule->add(id(i));
  for (double t : {0.0, 1.0, 2.0, 3.0}) {
    EXPECT_EQ(report(*rule, 0, t, 10 + t).action, Action::proceed);
    EXPECT_EQ(report(*rule, 1, t, 20 + t).action, Action::proceed);
  }
  // Others at 2: means of times 1 and 2 are 11.5 and 21.5; median 16.5.
  auto bad = report(*rule, 2, 2, 16);
  EXPECT_EQ(bad.action, Action::stop);
  EXPECT_DOUBLE_EQ(*bad.reason.cutoff, 16.5);
  EXPECT_EQ(bad.reason.value, 16.0);
  EXPECT_EQ(bad.reason.among, 3U);
  // One result above the median, also an early one, saves a trial.
  EXPECT_EQ(report(*rule, 3, 0.5, 18).action, Action::proceed);
  EXPECT_EQ(report(*rule, 3, 2, 3).action, Action::proceed);
}

TEST(MedianStopping, GivesWayWhileThereIsNothingToCompareWith) {
  auto rule = make_scheduler("median_stopping_rule",
                             maximize({{"grace_period", 1}, {"min_time_slice", 2}}));
  rule->add(id(0));
  EXPECT_EQ(report(*rule, 0, 1, 1, true).action, Action::proceed);
  EXPECT_EQ(report(*rule, 0, 3, 1, false).action, Action::proceed);
  EXPECT_EQ(report(*rule, 0, 3, 1, true).action, Action::pause);
  EXPECT_EQ(report(*rule, 0, 4, 1, true).action, Action::proceed);
}

TEST(MedianStopping, SoftStopPausesOnce) {
  auto rule = make_scheduler(
      "median_stopping_rule",
      maximize({{"grace_period", 0}, {"min_samples_required", 1}, {"hard_stop", false}}));
  rule->add(id(0));
  rule->add(id(1));
  report(*rule, 0, 5, 10);
  EXPECT_EQ(report(*rule, 1, 1, 1).action, Action::proceed);  // no result of the other by then
  EXPECT_EQ(report(*rule, 1, 5, 1).action, Action::pause);
  EXPECT_EQ(report(*rule, 1, 5, 1).action, Action::proceed);
}

}  // namespace
}  // namespace kolo::search

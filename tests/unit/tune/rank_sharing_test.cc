// Who gets how many ranks, and what a study does with the answer, in simulated time.
#include "tune/study/rank_sharing.h"

#include <gmock/gmock.h>

#include <set>

#include "store/study_store.h"
#include "unit/tune/moving_workers.h"
#include "unit/tune/study_fixture.h"

namespace kolo::test {
namespace {

using namespace tune;
using testing::ElementsAre;
using testing::HasSubstr;

/// Trials that have so many ranks and these values; small ones are good.
RankShares shares(int ranks, std::vector<std::pair<int, std::optional<double>>> trials) {
  RankShares all;
  all.ranks = ranks;
  all.range = {1, 4};
  for (const auto& [has, value] : trials)
    all.trials.push_back({static_cast<std::int64_t>(all.trials.size()), has, 1, value});
  return all;
}

TEST(RankPolicies, DistributeGivesAllTheSameAndTheRestToThoseWhoHaveMore) {
  const auto distribute = DistributeResources();
  EXPECT_THAT(distribute(shares(6, {{1, 0.1}, {1, 0.2}, {1, {}}})), ElementsAre(2, 2, 2));
  EXPECT_THAT(distribute(shares(7, {{2, 0.1}, {2, 0.2}, {3, {}}})), ElementsAre(2, 2, 3));
  EXPECT_THAT(distribute(shares(20, {{1, 0.1}, {1, 0.2}})),
              ElementsAre(4, 4));  // no more than most
  EXPECT_THAT(distribute(shares(1, {{1, 0.1}, {3, 0.2}})),
              ElementsAre(1, 1));  // nor less than least
}

TEST(RankPolicies, TheTopJobGetsAllItMayHave) {
  const auto top = DistributeResourcesToTopJob();
  EXPECT_THAT(top(shares(8, {{2, 0.5}, {2, 0.1}, {2, {}}})), ElementsAre(3, 4, 1));
  auto large_is_good = shares(8, {{2, 0.5}, {2, 0.1}, {2, {}}});
  large_is_good.direction = search::Direction::maximize;
  EXPECT_THAT(top(large_is_good), ElementsAre(4, 3, 1));
}

TEST(RankPolicies, ReuseTakesNothingFromARunningTrialUnlessAnotherWaits) {
  const auto reuse = ReuseWorkers();
  EXPECT_THAT(reuse(shares(5, {{3, 0.5}, {1, 0.1}})), ElementsAre(3, 2));  // one is free
  EXPECT_THAT(reuse(shares(4, {{3, 0.5}, {1, 0.1}})), ElementsAre(3, 1));
  EXPECT_THAT(reuse(shares(5, {{3, 0.5}, {3, 0.1}})), ElementsAre(2, 3));  // a place is wanted
  EXPECT_THAT(reuse(shares(5, {{3, {}}, {3, {}}})), ElementsAre(3, 2));
}

TEST(RankPolicies, AnAllocationNeedsARangeOfRanks) {
  Options options;
  EXPECT_FALSE(allocation_of(options));
  const auto error_of = [&options] {
    try {
      static_cast<void>(allocation_of(options));
    } catch (const Error& error) {
      return error.message();
    }
    return std::string();
  };
  options.scheduler.settings = {{"reuse_workers", true}};
  EXPECT_THAT(error_of(), HasSubstr("is a range"));
  options.resources_per_trial.ranks = {3, 2};
  EXPECT_THAT(error_of(), HasSubstr("3 to 2 ranks"));
  options.resources_per_trial.ranks = {1, 2};
  EXPECT_THAT(allocation_of(options)(shares(4, {{1, 0.5}, {2, 0.1}})), ElementsAre(1, 3));
  options.scheduler.allocation = DistributeResources();
  EXPECT_THAT(error_of(), HasSubstr("not both"));
}

/// Where there is a file system in memory, thousands of commits do not wait for a disk.
constexpr const char* kMemory = "/dev/shm";

class RankSharingTest : public StudyTest {
 protected:
  RankSharingTest()
      : StudyTest(std::filesystem::is_directory(kMemory) ? "/dev/shm/kolo-study" : "kolo-study") {}

  [[nodiscard]] Options fixed(const std::string& name, int slots, int samples) const {
    auto how = options(name);
    how.metric = "loss";
    how.mode = "min";
    how.num_samples = samples;
    how.config = {{"x", uniform(0.0, 1.0)}};
    how.total_resources = Resources{.cpu = static_cast<double>(slots)};
    how.loggers = {};
    return how;
  }
  [[nodiscard]] Options moving(const std::string& name, int slots, int samples) const {
    auto how = fixed(name, slots, samples);
    how.resources_per_trial.ranks = {1, 4};
    return how;
  }

  static Behaviour ten_steps() {
    Behaviour behaviour;
    behaviour.step = [](const Value& config, double&, std::int64_t iteration) {
      return Value{{"loss", config.at_path("x").as_number() / static_cast<double>(iteration)}};
    };
    behaviour.last_iteration = 10;
    behaviour.speed = [](int ranks) { return static_cast<double>(ranks); };
    return behaviour;
  }

  static double seconds_of(Simulation& simulation) {
    return std::chrono::duration<double>(simulation.clock.now() - Simulation().clock.now()).count();
  }
};

TEST_F(RankSharingTest, OneTrialGetsAllRanksThatItMayHave) {
  Simulation simulation;
  const auto analysis = simulation.run(moving("alone", 8, 1), ten_steps());
  EXPECT_EQ(analysis.trials().size(), 1U);
  EXPECT_EQ(simulation.most_ranks, 4);
  EXPECT_NEAR(seconds_of(simulation), 2.5, 0.2);  // ten steps of one second, by four
}

TEST_F(RankSharingTest, TheRanksOfATrialThatEndsJoinAnother) {
  auto behaviour = ten_steps();
  behaviour.step_seconds = [](std::int64_t trial) { return trial == 0 ? 1.0 : 3.0; };
  Simulation simulation;
  auto options = moving("two", 2, 2);
  options.scheduler = ResourceChangingScheduler({}, ReuseWorkers());
  const auto analysis = simulation.run(options, behaviour);
  EXPECT_EQ(analysis.errors().size(), 0U);
  EXPECT_EQ(simulation.most_ranks, 2);
  EXPECT_NEAR(seconds_of(simulation), 20, 0.5);  // 10 s by one rank, and 20 s of work by two
}

TEST_F(RankSharingTest, ATrialThatWaitsGetsItsPlaceBack) {
  // The second is faster, waits at the first rung for the first one, and lends it its place.
  auto options = moving("lent", 2, 1);
  options.config = {{"x", grid_search({0.5, 0.1})}};
  options.scheduler = ASHAScheduler(
      {{"max_t", 9}, {"reduction_factor", 3}, {"in_order", true}, {"reuse_workers", true}});
  auto behaviour = ten_steps();
  behaviour.step_seconds = [](std::int64_t trial) { return trial == 0 ? 4.0 : 1.0; };
  behaviour.saves = Behaviour::Saves::never;
  Simulation simulation;
  const auto analysis = simulation.run(options, behaviour);
  ASSERT_EQ(analysis.trials().size(), 2U);
  for (const auto& trial : analysis.trials()) EXPECT_EQ(trial.results.size(), 9U);
  std::vector<std::string> changes;
  auto database = store::open_database((scratch_.path() / "kolo.db").string());
  store::StudyStore store(*database);
  for (const auto& event : store.events(store.at("lent").id))
    if (event.kind == "ranks" && event.trial == 0) changes.push_back(event.detail);
  ASSERT_GE(changes.size(), 2U);
  EXPECT_EQ(changes[0], "from 1 to 2");
  EXPECT_EQ(changes[1], "from 2 to 1");
}

TEST_F(RankSharingTest, WhoHadHowManyRanksDoesNotChangeResults) {
  Simulation simulation;
  auto asha = ASHAScheduler({{"max_t", 9}, {"reduction_factor", 3}, {"in_order", true}});
  auto alone = fixed("calm", 4, 20);
  alone.scheduler = asha;
  auto shared = moving("shared", 4, 20);
  shared.scheduler = asha;
  shared.scheduler.settings.emplace("reuse_workers", true);
  auto behaviour = ten_steps();
  behaviour.step_seconds = [](std::int64_t trial) { return 1.0 + static_cast<double>(trial % 3); };
  behaviour.saves = Behaviour::Saves::never;
  const auto calm = simulation.run(alone, behaviour);
  behaviour.step_seconds = [](std::int64_t trial) { return 3.0 - static_cast<double>(trial % 3); };
  const auto moved = simulation.run(shared, behaviour);
  ASSERT_EQ(calm.trials().size(), 20U);
  ASSERT_EQ(moved.trials().size(), 20U);
  std::set<std::size_t> lengths;
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(moved.trials()[i].config, calm.trials()[i].config);
    EXPECT_EQ(moved.trials()[i].results.size(), calm.trials()[i].results.size()) << i;
    lengths.insert(calm.trials()[i].results.size());
  }
  EXPECT_GE(lengths.size(), 2U);  // some were stopped
}

TEST_F(RankSharingTest, OnATraceOf64NodesTheTargetIsReachedSooner) {
  MovingWorkers trace(scratch_.path());
  const double fixed = trace.time_to_target("fixed", /*moves=*/false, /*seed=*/1);
  const double moving = trace.time_to_target("moving", /*moves=*/true, /*seed=*/1);
  EXPECT_LE(moving, 0.85 * fixed) << fixed << " s with fixed trials";
}

}  // namespace
}  // namespace kolo::test

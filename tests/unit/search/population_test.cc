// Population based training, its replay, and PB2.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <set>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"
#include "search/scheduler/explore.h"
#include "search/scheduler/time_varying_gp.h"

namespace kolo::search {
namespace {

TrialId id(std::uint64_t number) { return TrialId{number}; }

Decision report(Scheduler& scheduler, std::uint64_t trial, double time, double value,
                bool others_wait = false) {
  return scheduler.result(id(trial), {.time = time, .values = {value}, .others_wait = others_wait});
}

std::set<double> variations(const Space& space, double value, double resample) {
  Random random(1);
  std::set<double> seen;
  for (int i = 0; i < 300; ++i)
    seen.insert(explore(Value{{"x", value}}, space, {.resample_probability = resample}, random)
                    .at_path("x")
                    .as_number());
  return seen;
}

TEST(Explore, MovesToNeighboursInAList) {
  Space space(Spec{{"x", choice({3, 4, 8, 10})}});
  EXPECT_EQ(variations(space, 4, 0), (std::set<double>{3, 8}));
  EXPECT_EQ(variations(space, 3, 0), (std::set<double>{3, 4}));
  EXPECT_EQ(variations(space, 10, 0), (std::set<double>{8, 10}));
  EXPECT_EQ(variations(space, 7, 0), (std::set<double>{3, 4, 8, 10}));  // not in the list
  EXPECT_EQ(variations(space, 4, 1), (std::set<double>{3, 4, 8, 10}));
}

TEST(Explore, MultipliesNumbersAndStaysInTheirDomain) {
  Space wide(Spec{{"x", integer(1, 1000)}});
  EXPECT_EQ(variations(wide, 100, 0), (std::set<double>{80, 120}));
  EXPECT_EQ(variations(wide, 1000, 0), (std::set<double>{800, 1000}));
  EXPECT_EQ(variations(wide, 1, 0), (std::set<double>{1, 2}));  // rounding does not hold it there
  Space narrow(Spec{{"x", uniform(0.9, 1.1)}});
  for (double x : variations(narrow, 1, 0)) EXPECT_TRUE(x >= 0.9 && x <= 1.1) << x;
  Random random(1);
  Value varied = explore(Value{{"x", 100}}, wide, {.resample_probability = 0}, random);
  EXPECT_TRUE(varied.at_path("x").is_integer());
}

TEST(Explore, KeepsTheRestAndFillsWhatIsMissing) {
  Space space(Spec{{"opt", Spec{{"lr", loguniform(1e-3, 1e-1)}}}});
  Random random(2);
  Value varied = explore(Value{{"seed", 7}, {"opt", Value{{"name", "sgd"}}}}, space, {}, random);
  EXPECT_EQ(varied.at_path("seed").as_integer(), 7);
  EXPECT_EQ(varied.at_path("opt/name").as_string(), "sgd");
  double lr = varied.at_path("opt/lr").as_number();
  EXPECT_TRUE(lr >= 1e-3 && lr <= 1e-1);
}

TEST(Explore, RespectsConditions) {
  auto space = Space::Builder()
                   .add("momentum", uniform(0, 1))
                   .add("optimizer", choice({"sgd", "adam"}))
                   .condition("momentum", equals("optimizer", "sgd"))
                   .build();
  Random random(3);
  Value config{{"optimizer", "sgd"}, {"momentum", 0.5}};
  int with = 0;
  for (int i = 0; i < 100; ++i) {
    config = explore(config, *space, {}, random);
    bool sgd = config.at_path("optimizer").as_string() == "sgd";
    EXPECT_EQ(config.find_path("momentum") != nullptr, sgd);
    with += sgd ? 1 : 0;
  }
  EXPECT_TRUE(with > 10 && with < 90);
}

// As a callable among Tune's mutations: drawn anew with the resample probability, else multiplied.
TEST(Explore, VariesWhatFunctionsDraw) {
  Space space(Spec{
      {"x", choice({1, 2})},
      {"rate", sample_from([](const ConfigView& view) { return view.random(); })},
      {"twice", sample_from([](const ConfigView& view) { return 2 * view.at("x").as_number(); })}});
  Random random(1);
  std::set<double> rates;
  for (int i = 0; i < 100; ++i) {
    Value varied = explore(Value{{"x", 1}, {"rate", 100.0}, {"twice", 2.0}}, space,
                           {.resample_probability = 0}, random);
    rates.insert(varied.at_path("rate").as_number());
    EXPECT_EQ(varied.at_path("twice").as_number(), 2 * varied.at_path("x").as_number());
  }
  EXPECT_EQ(rates, (std::set<double>{80, 120}));
  Value drawn =
      explore(Value{{"x", 1}, {"rate", 100.0}}, space, {.resample_probability = 1}, random);
  EXPECT_LT(drawn.at_path("rate").as_number(), 1);
  EXPECT_NE(drawn.find_path("twice"), nullptr);
}

SchedulerOptions population(std::map<std::string, Value> settings = {}) {
  SchedulerOptions options{.directions = {Direction::maximize}, .seed = 3};
  options.mutations = Space::Builder().add("lr", loguniform(1e-4, 1)).build();
  options.settings = std::move(settings);
  options.settings["perturbation_interval"] = 10;
  return options;
}

TEST(PopulationBasedTraining, TheWorstCopyTheBest) {
  auto pbt = make_scheduler("pbt", population());
  for (std::uint64_t i = 0; i < 4; ++i)
    pbt->add(id(i), Value{{"lr", std::pow(10.0, -static_cast<double>(i))}, {"layers", 3}});
  EXPECT_EQ(report(*pbt, 0, 5, 1).reason.rule, "between perturbations");
  EXPECT_EQ(report(*pbt, 0, 10, 1).action, Action::proceed);  // alone: nobody to copy
  EXPECT_EQ(report(*pbt, 1, 10, 4).reason.rule, "upper quantile");
  EXPECT_TRUE(report(*pbt, 2, 10, 5).save);
  auto worst = report(*pbt, 3, 10, 0);
  ASSERT_EQ(worst.action, Action::clone);
  EXPECT_EQ(worst.source, id(2));  // ceil(4 / 4) = 1: the best
  EXPECT_EQ(worst.reason.rule, "exploit");
  EXPECT_EQ(worst.reason.rank, 4U);
  EXPECT_EQ(worst.config->at_path("layers").as_integer(), 3);
  EXPECT_EQ(pbt->config(id(3)), *worst.config);
  ASSERT_EQ(pbt->policy().as_list().size(), 1U);
  EXPECT_EQ(pbt->policy().as_list()[0].as_list()[1].as_integer(), 2);
}

TEST(PopulationBasedTraining, GivesWayToThoseThatWait) {
  auto pbt = make_scheduler("pbt", population());
  pbt->add(id(0));
  pbt->add(id(1));
  auto decision = report(*pbt, 0, 10, 1, true);
  EXPECT_EQ(decision.action, Action::pause);
  EXPECT_TRUE(decision.save);
  EXPECT_EQ(pbt->next(std::vector{id(0), id(1)}), id(1));  // the least far
}

TEST(PopulationBasedTraining, SynchWaitsForAll) {
  auto pbt = make_scheduler("pbt", population({{"synch", true}}));
  for (std::uint64_t i = 0; i < 4; ++i) pbt->add(id(i), Value{{"lr", 0.1}});
  for (std::uint64_t i = 0; i < 3; ++i) {
    EXPECT_EQ(report(*pbt, i, 10, static_cast<double>(i)).action, Action::pause);
    EXPECT_EQ(pbt->next(std::vector{id(i)}), std::nullopt);
  }
  EXPECT_TRUE(pbt->take_decisions().empty());
  EXPECT_EQ(report(*pbt, 3, 10, 9).reason.rule, "upper quantile");
  auto others = pbt->take_decisions();
  ASSERT_EQ(others.size(), 3U);
  EXPECT_EQ(others[0].first, id(0));
  EXPECT_EQ(others[0].second.action, Action::clone);
  EXPECT_EQ(others[1].second.action, Action::proceed);
}

TEST(PopulationBasedTraining, CustomExploreComesLast) {
  auto options = population();
  options.explore = [](Value config) {
    config.as_dict()["mark"] = true;
    return config;
  };
  auto pbt = make_scheduler("pbt", options);
  pbt->add(id(0), Value{{"lr", 0.1}});
  pbt->add(id(1), Value{{"lr", 0.2}});
  report(*pbt, 0, 10, 1);
  EXPECT_TRUE(report(*pbt, 1, 10, 0).config->at_path("mark").as_bool());
}

TEST(PopulationReplay, FollowsTheChainOfClones) {
  auto pbt = make_scheduler("pbt", population());
  pbt->add(id(0), Value{{"lr", 0.5}});
  pbt->add(id(1), Value{{"lr", 0.25}});
  report(*pbt, 0, 10, 9);
  Value first = *report(*pbt, 1, 10, 1).config;  // 1 copies 0 at 10
  report(*pbt, 1, 20, 12);
  Value second = *report(*pbt, 0, 20, 2).config;  // 0 copies 1 at 20
  Schedule schedule = follow_policy(pbt->policy(), id(0));
  EXPECT_EQ(schedule.initial, (Value{{"lr", 0.5}}));
  ASSERT_EQ(schedule.changes.size(), 2U);
  EXPECT_EQ(schedule.changes[0], (std::pair<double, Value>{10, first}));
  EXPECT_EQ(schedule.changes[1], (std::pair<double, Value>{20, second}));

  auto replay =
      make_scheduler("pbt_replay", {.settings = {{"policy", pbt->policy()}, {"trial", 0}}});
  replay->add(id(7), schedule.initial);
  EXPECT_EQ(report(*replay, 7, 9, 0).action, Action::proceed);
  auto change = report(*replay, 7, 10, 0);
  EXPECT_EQ(change.action, Action::clone);
  EXPECT_EQ(change.source, id(7));
  EXPECT_EQ(change.config, first);
  EXPECT_EQ(report(*replay, 7, 11, 0).action, Action::proceed);
  EXPECT_EQ(report(*replay, 7, 25, 0).config, second);
  EXPECT_THROW(replay->add(id(8)), Error);
  EXPECT_THROW((void)follow_policy(pbt->policy(), id(5)), Error);
}

TEST(TimeVaryingGp, GradientsAgreeWithDifferences) {
  Random random(4);
  Eigen::MatrixXd inputs(12, 4);
  Eigen::VectorXd outputs(12);
  for (Eigen::Index i = 0; i < 12; ++i) {
    for (Eigen::Index j = 0; j < 4; ++j) inputs(i, j) = random.uniform() * (j == 0 ? 9 : 1);
    outputs[i] = random.normal();
  }
  TimeVaryingGp gp(inputs, outputs, {});
  Eigen::VectorXd x(4);
  x << 10, 0.3, 0.6, 0.2;
  auto mean = gp.mean(x);
  auto variance = gp.variance(x);
  EXPECT_GT(variance.value, 0);
  for (Eigen::Index j = 1; j < 4; ++j) {
    Eigen::VectorXd up = x;
    Eigen::VectorXd down = x;
    up[j] += 1e-5;
    down[j] -= 1e-5;
    EXPECT_NEAR(mean.gradient[j - 1], (gp.mean(up).value - gp.mean(down).value) / 2e-5, 1e-6);
    EXPECT_NEAR(variance.gradient[j - 1], (gp.variance(up).value - gp.variance(down).value) / 2e-5,
                1e-6);
  }
}

TEST(PopulationBandits, FindsTheRateThatGainsMost) {
  auto options = population({{"synch", true}});
  options.mutations = Space::Builder().add("lr", uniform(0, 1)).build();
  auto pb2 = make_scheduler("pb2", options);
  Random random(5);
  constexpr std::uint64_t kTrials = 8;
  std::vector<double> reward(kTrials, 0);
  for (std::uint64_t i = 0; i < kTrials; ++i) pb2->add(id(i), Value{{"lr", random.uniform()}});
  std::vector<double> late;
  for (int round = 1; round <= 30; ++round) {
    std::vector<std::pair<TrialId, Decision>> decisions;
    for (std::uint64_t i = 0; i < kTrials; ++i) {
      double lr = pb2->config(id(i)).at_path("lr").as_number();
      reward[i] += 1 - 4 * (lr - 0.7) * (lr - 0.7);  // gains most at 0.7
      decisions.emplace_back(id(i), report(*pb2, i, 10.0 * round, reward[i]));
    }
    for (auto& later : pb2->take_decisions()) decisions.push_back(std::move(later));
    int clones = 0;
    for (const auto& [trial, decision] : decisions) {
      if (decision.action != Action::clone) continue;
      ++clones;
      reward[static_cast<std::uint64_t>(trial)] =
          reward[static_cast<std::uint64_t>(*decision.source)];
      double chosen = decision.config->at_path("lr").as_number();
      ASSERT_TRUE(chosen >= 0 && chosen <= 1);
      if (round > 15) late.push_back(chosen);
    }
    EXPECT_EQ(clones, 2);  // a quarter
  }
  double apart = 0;
  for (double lr : late) apart += std::abs(lr - 0.7) / static_cast<double>(late.size());
  EXPECT_LT(apart, 0.2);  // chance: 0.29
}

TEST(PopulationBandits, ChoosesNumbersWhateverWasReported) {
  const double huge = 1e308, none = std::nan("");
  for (const double reward : {huge, none, static_cast<double>(INFINITY)}) {
    auto options = population({{"synch", true}});
    options.mutations = Space::Builder().add("lr", uniform(0.25, 0.5)).build();
    auto pb2 = make_scheduler("pb2", options);
    constexpr std::uint64_t kTrials = 4;
    for (std::uint64_t i = 0; i < kTrials; ++i)
      pb2->add(id(i), Value{{"lr", 0.25 + 0.05 * static_cast<double>(i)}});
    for (int round = 1; round <= 10; ++round) {
      std::vector<Decision> decisions;
      for (std::uint64_t i = 0; i < kTrials; ++i) {
        const bool is_odd = (static_cast<std::uint64_t>(round) + i) % 2 == 1;
        decisions.push_back(report(*pb2, i, 10.0 * round,
                                   round < 3 ? 1.0
                                   : is_odd  ? reward
                                             : -huge));
      }
      for (auto& later : pb2->take_decisions()) decisions.push_back(std::move(later.second));
      for (const auto& decision : decisions) {
        if (decision.action != Action::clone) continue;
        const double chosen = decision.config->at_path("lr").as_number();
        EXPECT_TRUE(chosen >= 0.25 && chosen <= 0.5) << chosen << " after " << reward;
      }
    }
  }
}

TEST(PopulationBandits, VariesNumbersOnly) {
  auto options = population();
  options.mutations = Space::Builder().add("kind", choice({"a", "b"})).build();
  EXPECT_THROW((void)make_scheduler("pb2", options), Error);
}

}  // namespace
}  // namespace kolo::search

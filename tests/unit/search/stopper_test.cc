#include "kolo/search/stopper.h"

#include <gtest/gtest.h>

#include "kolo/error.h"

namespace kolo::search {
namespace {

using namespace std::chrono_literals;

constexpr TrialId kOne{1};
constexpr TrialId kTwo{2};

Value loss(double value) { return Value{{"loss", value}}; }

TEST(Stopper, AnyMetricAtItsLimit) {
  auto stopper = metric_stopper({{"training_iteration", 10}, {"eval/accuracy", 0.9}});
  auto result = [](int iteration, double accuracy) {
    return Value{{"training_iteration", iteration}, {"eval", Value{{"accuracy", accuracy}}}};
  };
  EXPECT_FALSE(stopper->stop(kOne, result(9, 0.89)));
  EXPECT_TRUE(stopper->stop(kOne, result(10, 0.1)));
  EXPECT_TRUE(stopper->stop(kOne, result(1, 0.9)));
  EXPECT_FALSE(stopper->stop_all(1h));
}

TEST(Stopper, ANameThatIsMissingIsSaidWithThoseThatAreThere) {
  for (const auto& stopper :
       {metric_stopper({{"los", 1}}), trial_plateau_stopper({.metric = "los"}),
        experiment_plateau_stopper({.metric = "los"})}) {
    try {
      (void)stopper->stop(kOne, loss(1));
      ADD_FAILURE() << "a missing metric was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::not_found);
      EXPECT_NE(std::string(error.what()).find("the result has no 'los'; it has loss"),
                std::string::npos)
          << error.what();
    }
  }
}

TEST(Stopper, CountsResultsPerTrial) {
  auto stopper = maximum_iteration_stopper(2);
  EXPECT_FALSE(stopper->stop(kOne, {}));
  EXPECT_FALSE(stopper->stop(kTwo, {}));
  EXPECT_TRUE(stopper->stop(kOne, {}));
}

TEST(Stopper, TrialPlateau) {
  auto stopper =
      trial_plateau_stopper({.metric = "loss", .std = 0.05, .num_results = 3, .grace_period = 4});
  for (double value : {1.0, 1.0, 1.0}) EXPECT_FALSE(stopper->stop(kOne, loss(value)));
  EXPECT_TRUE(stopper->stop(kOne, loss(1)));
  for (double value : {4.0, 3.0, 2.0, 1.0}) EXPECT_FALSE(stopper->stop(kTwo, loss(value)));
  EXPECT_FALSE(stopper->stop(kTwo, loss(1.01)));
  EXPECT_TRUE(stopper->stop(kTwo, loss(1)));
}

TEST(Stopper, TrialPlateauAboveAThresholdDoesNotCount) {
  auto stopper = trial_plateau_stopper(
      {.metric = "loss", .num_results = 2, .grace_period = 0, .metric_threshold = 0.5});
  EXPECT_FALSE(stopper->stop(kOne, loss(1)));
  EXPECT_FALSE(stopper->stop(kOne, loss(1)));
  EXPECT_FALSE(stopper->stop(kOne, loss(0.4)));
  EXPECT_TRUE(stopper->stop(kOne, loss(0.4)));
}

TEST(Stopper, ExperimentPlateau) {
  auto stopper = experiment_plateau_stopper({.metric = "loss", .top = 2, .patience = 1});
  EXPECT_FALSE(stopper->stop(kOne, loss(3)));
  EXPECT_FALSE(stopper->stop(kTwo, loss(1)));
  EXPECT_FALSE(stopper->stop(kOne, loss(1)));  // the two best are alike now
  EXPECT_FALSE(stopper->stop_all(0s));
  EXPECT_TRUE(stopper->stop(kTwo, loss(5)));
  EXPECT_TRUE(stopper->stop_all(0s));
  EXPECT_FALSE(stopper->stop(kTwo, loss(0)));  // something better
  EXPECT_FALSE(stopper->stop_all(0s));
}

TEST(Stopper, TimeIsTold) {
  auto stopper = timeout_stopper(90s);
  EXPECT_FALSE(stopper->stop(kOne, {}));
  EXPECT_FALSE(stopper->stop_all(89s));
  EXPECT_TRUE(stopper->stop_all(90s));
  EXPECT_THROW((void)timeout_stopper(-1s), Error);
}

TEST(Stopper, CombinedTellsAll) {
  std::vector<std::unique_ptr<Stopper>> parts;
  parts.push_back(maximum_iteration_stopper(1));
  parts.push_back(maximum_iteration_stopper(2));
  parts.push_back(noop_stopper());
  parts.push_back(timeout_stopper(5s));
  int calls = 0;
  parts.push_back(function_stopper([&](TrialId trial, const Value&) {
    ++calls;
    return trial == kTwo;
  }));
  auto stopper = combined_stopper(std::move(parts));
  EXPECT_TRUE(stopper->stop(kOne, {}));
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(stopper->stop_all(4s));
  EXPECT_TRUE(stopper->stop_all(6s));
}

TEST(Stopper, RefusesRulesThatMakeNoSense) {
  EXPECT_THROW((void)trial_plateau_stopper({.metric = ""}), Error);
  EXPECT_THROW((void)trial_plateau_stopper({.metric = "x", .num_results = 0}), Error);
  EXPECT_THROW((void)experiment_plateau_stopper({.metric = "x", .top = 0}), Error);
  EXPECT_THROW((void)function_stopper({}), Error);
}

}  // namespace
}  // namespace kolo::search

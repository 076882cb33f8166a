#include "train/step_tuner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace kolo::train {
namespace {

using testing::HasSubstr;
using testing::Not;

/// How long a step takes with these settings.
using Machine = std::function<double(const StepSettings&, int step)>;

/// The settings a tuner ends with on a machine.
StepSettings tuned(StepTuner& tuner, StepSettings settings, const Machine& seconds) {
  int step = 0;
  while (!tuner.is_done()) {
    EXPECT_LT(step, 1000) << "it does not end";
    if (const auto next = tuner.record(seconds(settings, step++))) settings = *next;
  }
  return settings;
}

constexpr StepSettings kGiven{.bucket_bytes = 1000, .one_trip_bytes = 400, .uses_helper = false};

TEST(StepTuner, FindsTheFastestSize) {
  StepTuner tuner(kGiven, true);
  const StepSettings chosen = tuned(
      tuner, kGiven, [](const StepSettings& s, int) { return s.bucket_bytes == 4000 ? 0.5 : 1.0; });
  EXPECT_EQ(chosen, (StepSettings{4000, 400, false}));
  EXPECT_THAT(tuner.csv(), HasSubstr(",4000,trainer,400,0.500000,1\n"));
}

TEST(StepTuner, FindsSwitchPointsFromTheBestSize) {
  // Each of the three helps by itself, and with the others.
  StepTuner tuner(kGiven, true);
  const StepSettings chosen = tuned(tuner, kGiven, [](const StepSettings& s, int) {
    return 1.0 - (s.bucket_bytes == 500 ? 0.2 : 0) - (s.uses_helper ? 0.2 : 0) -
           (s.one_trip_bytes == 1600 ? 0.2 : 0);
  });
  EXPECT_EQ(chosen, (StepSettings{500, 1600, true}));
  EXPECT_THAT(tuner.csv(), HasSubstr(",500,helper,1600,0.400000,1\n"));
}

TEST(StepTuner, TriesOnlyWhatThereIs) {
  const StepSettings given{.bucket_bytes = 1000};
  StepTuner tuner(given, false);
  tuned(tuner, given, [](const StepSettings& s, int) {
    EXPECT_FALSE(s.uses_helper);
    EXPECT_EQ(s.one_trip_bytes, 0U);
    return s.bucket_bytes == 2000 ? 0.5 : 1.0;
  });
  EXPECT_THAT(tuner.csv(), Not(HasSubstr("helper")));
}

TEST(StepTuner, StaysWhenNothingIsFaster) {
  const auto slower = [](const StepSettings& s, int) { return s == kGiven ? 1.0 : 1.2; };
  const auto level = [](const StepSettings&, int) { return 1.0; };
  const auto hardly_faster = [](const StepSettings& s, int) { return s == kGiven ? 1.0 : 0.995; };
  for (const Machine& machine : {Machine(slower), Machine(level), Machine(hardly_faster)}) {
    StepTuner tuner(kGiven, true);
    EXPECT_EQ(tuned(tuner, kGiven, machine), kGiven);
  }
}

TEST(StepTuner, DoesNotTrustASingleTrial) {
  // Looks faster the first time only: the machine was quiet then.
  for (const StepSettings quiet : {StepSettings{8000, 400, false}, StepSettings{1000, 400, true},
                                   StepSettings{1000, 100, false}}) {
    StepTuner tuner(kGiven, true);
    int steps = 0;
    EXPECT_EQ(
        tuned(tuner, kGiven,
              [&](const StepSettings& s, int) { return s == quiet && ++steps <= 12 ? 0.5 : 1.0; }),
        kGiven);
    EXPECT_GT(steps, 12) << "it was not tried again";
  }
}

}  // namespace
}  // namespace kolo::train

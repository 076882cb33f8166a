#include <gmock/gmock.h>

#include <cmath>

#include "base/random.h"
#include "kolo/error.h"
#include "kolo/search.h"

namespace kolo::search {
namespace {

TEST(SpaceTest, SamplesNestedConfigurations) {
  const Space space(Spec{{"lr", loguniform(1e-4, 1e-1)},
                         {"model", Spec{{"units", choice({32, 64})}, {"bias", true}}}});
  Random random(1);
  const Point point = space.sample(random);
  const Value config = space.config(point, random);
  EXPECT_GE(config.at_path("lr").as_number(), 1e-4);
  EXPECT_TRUE(config.at_path("model/bias").as_bool());
  EXPECT_TRUE(same_point(space.point(config), point));
}

TEST(SpaceTest, ConditionsSwitchParametersOff) {
  const auto space = Space::Builder()
                         .add("optimizer", choice({"sgd", "adam"}))
                         .add("momentum", uniform(0, 1))
                         .condition("momentum", equals("optimizer", "sgd"))
                         .build();
  Random random(1);
  for (int i = 0; i < 50; ++i) {
    const Value config = space->config(space->sample(random), random);
    EXPECT_EQ(config.find_path("momentum") != nullptr,
              config.at_path("optimizer").as_string() == "sgd");
  }
}

}  // namespace
}  // namespace kolo::search

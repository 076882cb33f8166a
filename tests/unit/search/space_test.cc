#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"
#include "search/space/encoder.h"

namespace kolo::search {
namespace {

using testing::HasSubstr;

std::shared_ptr<const Space> one(Domain domain) {
  return Space::Builder().add("x", std::move(domain)).build();
}

std::map<double, int> counts(Domain domain, int draws = 4000) {
  const auto space = one(std::move(domain));
  Random random(5);
  std::map<double, int> seen;
  for (int i = 0; i < draws; ++i) ++seen[space->sample(random)[0]];
  return seen;
}

std::set<double> values(const std::map<double, int>& counted) {
  std::set<double> keys;
  for (const auto& [value, count] : counted) keys.insert(value);
  return keys;
}

TEST(SpaceTest, RangesAreExact) {
  using Set = std::set<double>;
  EXPECT_EQ(values(counts(randint(0, 3))), (Set{0, 1, 2}));
  EXPECT_EQ(values(counts(qrandint(0, 6, 3))), (Set{0, 3, 6}));
  EXPECT_EQ(values(counts(qrandint(0, 3))), (Set{0, 1, 2}));
  EXPECT_EQ(values(counts(qrandint(1, 8, 3))), (Set{3, 6}));
  EXPECT_EQ(values(counts(lograndint(1, 4))), (Set{1, 2, 3}));
  EXPECT_EQ(values(counts(qlograndint(2, 6, 2))), (Set{2, 4, 6}));
  EXPECT_EQ(values(counts(integer(1, 3))), (Set{1, 2, 3}));
  EXPECT_EQ(values(counts(quniform(-0.5, 0.5, 0.5))), (Set{-0.5, 0, 0.5}));
  EXPECT_EQ(values(counts(qloguniform(1, 3, 1))), (Set{1, 2, 3}));
  for (const auto& [value, count] : counts(uniform(2, 3))) EXPECT_TRUE(value >= 2 && value < 3);
  for (const auto& [value, count] : counts(normal(0, 5, -1, 1))) EXPECT_LE(std::abs(value), 1);
  for (const auto& [value, count] : counts(qrandn(0, 1, 0.5)))
    EXPECT_EQ(value * 2, std::floor(value * 2));
}

TEST(SpaceTest, DistributionsAreAsSaid) {
  const auto ends = counts(quniform(0, 2, 1));
  EXPECT_NEAR(ends.at(0), 1000, 120);
  EXPECT_NEAR(ends.at(1), 2000, 150);
  const auto logs = counts(lograndint(1, 4));
  EXPECT_NEAR(logs.at(1), 2000, 150);  // log 2 / log 4
  const auto weighted = counts(categorical({"a", "b"}, {1, 3}));
  EXPECT_NEAR(weighted.at(1), 3000, 130);
}

TEST(SpaceTest, SamplesNestedConfigurations) {
  const Space space(Spec{{"lr", loguniform(1e-4, 1e-1)},
                         {"model", Spec{{"units", choice({32, 64})}, {"bias", true}}}});
  Random random(1);
  const Point point = space.sample(random);
  const Value config = space.config(point, random);
  EXPECT_GE(config.at_path("lr").as_number(), 1e-4);
  EXPECT_TRUE(config.at_path("model/bias").as_bool());
  EXPECT_TRUE(config.at_path("model/units").is_integer());
  EXPECT_TRUE(same_point(space.point(config), point));
}

TEST(SpaceTest, ConditionsSwitchWholeSubtreesOff) {
  const auto space = Space::Builder()
                         .add("optimizer", choice({"sgd", "adam"}))
                         .add("sgd/momentum", uniform(0, 1))
                         .add("sgd/nesterov", true)
                         .add("deep", uniform(0, 1))
                         .condition("sgd", equals("optimizer", "sgd"))
                         .condition("deep", greater("sgd/momentum", 0.5))
                         .build();
  Random random(1);
  int deep = 0;
  for (int i = 0; i < 200; ++i) {
    const Point point = space->sample(random);
    ASSERT_TRUE(space->allows(point));
    const Value config = space->config(point, random);
    const bool sgd = config.at_path("optimizer").as_string() == "sgd";
    EXPECT_EQ(config.find_path("sgd") != nullptr, sgd);
    EXPECT_EQ(config.find_path("deep") != nullptr,
              sgd && config.at_path("sgd/momentum").as_number() > 0.5);
    deep += config.find_path("deep") != nullptr;
    EXPECT_TRUE(same_point(space->point(config), point));
  }
  EXPECT_GT(deep, 10);
}

TEST(SpaceTest, SettleMakesPointsRegular) {
  const auto space = Space::Builder()
                         .add("a", choice({"on", "off"}))
                         .add("b", integer(0, 10))
                         .add("c", uniform(0, 1))
                         .condition("b", equals("a", "on"))
                         .build();
  Random random(2);
  Point point{1, 3, 7};
  EXPECT_TRUE(space->settle(point, random));
  EXPECT_TRUE(std::isnan(point[1]));
  EXPECT_EQ(point[2], 1);
  point[0] = 0;
  EXPECT_FALSE(space->allows(point));
  EXPECT_TRUE(space->settle(point, random));
  EXPECT_TRUE(space->allows(point));
}

TEST(SpaceTest, ForbiddenAndConstrainedPointsAreNotDrawn) {
  const auto space =
      Space::Builder()
          .add("a", integer(0, 3))
          .add("b", integer(0, 3))
          .forbid(same("a", "b"))
          .constraint([](const Value& config) {
            return config.at_path("a").as_integer() + config.at_path("b").as_integer() < 5;
          })
          .build();
  Random random(3);
  for (int i = 0; i < 100; ++i) {
    const Point point = space->sample(random);
    EXPECT_NE(point[0], point[1]);
    EXPECT_LT(point[0] + point[1], 5);
  }
  EXPECT_FALSE(space->allows({2, 2}));
}

TEST(SpaceTest, PartialConfigurationsAreCompleted) {
  const auto space = Space::Builder()
                         .add("a", choice({"on", "off"}))
                         .add("b", integer(0, 10))
                         .condition("b", equals("a", "on"))
                         .build();
  Random random(4);
  for (int i = 0; i < 20; ++i) {
    const Point point = space->point(Value{{"b", 4}}, random);
    EXPECT_EQ(point[0], 0);
    EXPECT_EQ(point[1], 4);
  }
  EXPECT_THROW((void)space->point(Value{{"a", "off"}, {"b", 4}}, random), Error);
  EXPECT_THROW((void)space->point(Value{{"a", "on"}}), Error);
}

TEST(SpaceTest, AnEmptySpaceHasOnePoint) {
  const Space space(Spec{{"x", 3}});
  Random random(0);
  EXPECT_TRUE(space.sample(random).empty());
  EXPECT_EQ(space.config({}, random), (Value{{"x", 3}}));
}

TEST(SpaceTest, AMillionChoicesAreCheap) {
  std::vector<Value> many;
  for (int i = 0; i < 1'000'000; ++i) many.emplace_back(i);
  const auto space = one(choice(std::move(many)));
  Random random(0);
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(space->allows(space->sample(random)));
  EXPECT_THAT(space->parameters()[0].domain, HasSubstr("1000000 values"));
}

TEST(EncoderTest, RoundTripsAreExact) {
  const auto space = Space::Builder()
                         .add("a", uniform(-3, 5))
                         .add("b", quniform(0, 1, 0.1))
                         .add("c", loguniform(1e-6, 1e3))
                         .add("d", qloguniform(0.1, 1, 0.1))
                         .add("e", randn(3, 2))
                         .add("f", randint(-5, 70))
                         .add("g", lograndint(1, 5000))
                         .add("h", qlograndint(4, 64, 4))
                         .add("i", normal_integer(5, 2, 0, 10))
                         .add("j", choice({"x", "y", "z"}))
                         .add("k", ordinal({1, 2, 4}))
                         .add("l", qrandn(0, 1, 0.5))
                         .build();
  for (const auto form :
       {EncoderOptions::Categorical::label, EncoderOptions::Categorical::one_hot}) {
    const Encoder encoder(space, {.categorical = form});
    Random random(7);
    Point back;
    for (int i = 0; i < 2000; ++i) {
      const Point point = space->sample(random);
      const auto row = encoder.encode(point);
      for (const double entry : row) ASSERT_TRUE(entry >= 0 && entry <= 1);
      encoder.decode(row, back, random);
      for (std::size_t k = 0; k < point.size(); ++k) {
        if (space->parameters()[k].is_discrete() || space->parameters()[k].quantum > 0)
          ASSERT_EQ(point[k], back[k]) << space->parameters()[k].path;
        else
          ASSERT_NEAR(point[k], back[k], 1e-11 * std::max(1.0, std::abs(point[k])));
      }
    }
  }
}

TEST(EncoderTest, InactiveParametersAreInTheMiddleAndMarked) {
  const auto space = Space::Builder()
                         .add("a", choice({"on", "off"}))
                         .add("b", integer(0, 10))
                         .condition("b", equals("a", "on"))
                         .build();
  const Encoder encoder(space, {.activity = true});
  ASSERT_EQ(encoder.width(), 4U);
  EXPECT_EQ(encoder.encode({1, std::nan("")}), (std::vector<double>{0, 1, 0.5, 0}));
}

TEST(EncoderTest, QuantileIsTheInverseOfTheCurve) {
  for (const double z : {-6.0, -2.5, -0.1, 0.0, 1.0, 3.0})
    EXPECT_NEAR(normal_quantile(normal_cdf(z)), z, 1e-9);
}

}  // namespace
}  // namespace kolo::search

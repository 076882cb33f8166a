// Grid times samples: the orders and counts of Tune's documentation.
#include <gmock/gmock.h>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"

namespace kolo::search {
namespace {

using testing::ElementsAre;

std::vector<Value> configs_of(const std::shared_ptr<const Space>& space, SamplerOptions options,
                              std::size_t limit = 1000) {
  auto sampler = make_sampler("grid", space, std::move(options));
  std::vector<Value> configs;
  while (configs.size() < limit && !sampler->exhausted()) {
    const TrialId id{configs.size()};
    const auto point = sampler->ask(id);
    if (!point) break;
    Random random = Random(0).stream("config", configs.size());
    configs.push_back(space->config(*point, random));
    sampler->tell(id, Outcome::complete(0.0));
  }
  return configs;
}

std::size_t count_of(const char* json, std::int64_t num_samples) {
  return configs_of(Space::from_json(json), {.settings = {{"num_samples", num_samples}}}).size();
}

TEST(GridTest, TurnsTheFirstPathFastest) {
  const auto space = Space::from_json(
      R"({"foo": {"grid_search": [1, 2, 3]}, "bar": {"grid_search": [true, false]}})");
  std::vector<std::string> seen;
  for (const Value& config : configs_of(space, {})) seen.push_back(config.to_string());
  EXPECT_THAT(seen, ElementsAre(R"({"bar": true, "foo": 1})", R"({"bar": false, "foo": 1})",
                                R"({"bar": true, "foo": 2})", R"({"bar": false, "foo": 2})",
                                R"({"bar": true, "foo": 3})", R"({"bar": false, "foo": 3})"));
}

TEST(GridTest, MakesTheDocumentedNumbersOfTrials) {
  const char* g3 = R"({"a": {"grid_search": [1, 2, 3]}})";
  const char* g33 = R"({"a": {"grid_search": [1, 2, 3]}, "b": {"grid_search": [1, 2, 3]}})";
  EXPECT_EQ(count_of(R"({"a": {"choice": [1, 2, 3]}})", 13), 13U);
  EXPECT_EQ(count_of(R"({"a": {"choice": [1, 2, 3]}, "b": {"randn": []}})", 13), 13U);
  EXPECT_EQ(count_of(R"({"a": {"grid_search": [1, 2, 3, 4]}})", 1), 4U);
  EXPECT_EQ(count_of(g3, 1), 3U);
  EXPECT_EQ(count_of(g3, 2), 6U);
  EXPECT_EQ(count_of(g33, 1), 9U);
  EXPECT_EQ(count_of(g33, 2), 18U);
  EXPECT_EQ(count_of(g33, 5), 45U);
  EXPECT_EQ(count_of(R"({"f": {"eval": "random() + 1"}, "a": {"grid_search": [1, 2, 3]}})", 2), 6U);
  EXPECT_EQ(count_of(R"({"alpha": {"uniform": [0, 100]}, "beta": {"eval": "random() * alpha"},
                         "layers": [{"grid_search": [16, 64, 256]},
                                    {"grid_search": [16, 64, 256]}]})",
                     10),
            90U);
  EXPECT_EQ(count_of(R"({"f": {"eval": "2 + 2"}, "a": {"grid_search": [1, 2]},
                         "b": {"grid_search": [1, 2, 3]}, "c": 5})",
                     1),
            6U);
}

TEST(GridTest, StartingPointsAreSamplesAndFixTheirAxes) {
  const auto space =
      Space::from_json(R"({"a": {"grid_search": [1, 2]}, "b": {"randint": [0, 100]}})");
  const auto configs = configs_of(
      space, {.points_to_evaluate = {Value{{"a", 2}, {"b", 2}}, Value{{"a", 1}}, Value{{"b", 2}}},
              .settings = {{"num_samples", 4}}});
  ASSERT_EQ(configs.size(), 6U);
  EXPECT_EQ(configs[0], (Value{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(configs[1].at_path("a"), Value(1));
  EXPECT_EQ(configs[2], (Value{{"a", 1}, {"b", 2}}));
  EXPECT_EQ(configs[3], (Value{{"a", 2}, {"b", 2}}));
  EXPECT_EQ(configs[4].at_path("a"), Value(1));
  EXPECT_EQ(configs[5].at_path("a"), Value(2));
}

TEST(GridTest, DrawsAnewForEachCombinationUnlessToldNotTo) {
  const auto space =
      Space::from_json(R"({"a": {"grid_search": [1, 2]}, "b": {"uniform": [0, 1]}})");
  const auto free = configs_of(space, {});
  EXPECT_FALSE(free[0].at_path("b") == free[1].at_path("b"));
  const auto held =
      configs_of(space, {.settings = {{"constant_grid_search", true}, {"num_samples", 2}}});
  EXPECT_EQ(held[0].at_path("b"), held[1].at_path("b"));
  EXPECT_FALSE(held[1].at_path("b") == held[2].at_path("b"));
}

TEST(GridTest, GridsOfFunctionsAreResolvedAfter) {
  const auto space = Space::from_json(
      R"({"a": {"grid_search": [{"eval": "b + 1"}, 7]}, "b": {"randint": [3, 4]}})");
  const auto configs = configs_of(space, {});
  ASSERT_EQ(configs.size(), 2U);
  EXPECT_EQ(configs[0].at_path("a"), Value(4));
  EXPECT_EQ(configs[1].at_path("a"), Value(7));
}

TEST(GridTest, GoesOnWithoutEnd) {
  const auto space = Space::from_json(R"({"a": {"grid_search": [1, 2]}})");
  EXPECT_EQ(configs_of(space, {.settings = {{"num_samples", -1}}}, 101).size(), 101U);
}

TEST(GridTest, AMillionCombinationsAreNotListed) {
  const auto space = Space::from_json(R"({"a": {"integer": [0, 999999]},
                                          "b": {"integer": [0, 999999]}})");
  EXPECT_EQ(configs_of(space, {.settings = {{"levels", 1000000}}}, 5).size(), 5U);
}

TEST(GridTest, InactiveAxesAndForbiddenCombinationsArePassedOver) {
  const auto space = Space::from_json(R"({"kolo_space": 1,
      "parameters": {"a": {"grid_search": [1, 2]}, "b": {"grid_search": [1, 2, 3]},
                     "c": {"grid_search": ["x", "y"]}},
      "conditions": {"b": {"equals": ["a", 2]}},
      "forbidden": [{"and": [{"equals": ["a", 1]}, {"equals": ["c", "x"]}]}]})");
  // a=1: b absent, c=y; a=2: three times two.
  EXPECT_EQ(configs_of(space, {}).size(), 7U);
}

}  // namespace
}  // namespace kolo::search

#include <gmock/gmock.h>

#include "kolo/error.h"
#include "kolo/random.h"
#include "kolo/search.h"

namespace kolo::search {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.message();
  }
  return "nothing was thrown";
}

std::string refusal_of(const std::string& json) {
  return message_of([&] { (void)Space::from_json(json, "space.json"); });
}

TEST(SpaceJsonTest, SaysTheSameAsTheBuilder) {
  const auto built = Space::Builder()
                         .add("a", uniform(0, 1))
                         .add("b", quniform(0, 1, 0.25))
                         .add("c", loguniform(1e-3, 1))
                         .add("d", qloguniform(0.5, 8, 0.5))
                         .add("e", randn(1, 2))
                         .add("f", qrandn(1, 2, 0.5))
                         .add("g", randint(0, 9))
                         .add("h", qrandint(0, 9, 3))
                         .add("i", lograndint(1, 9))
                         .add("j", qlograndint(2, 8, 2))
                         .add("k", real(0.1, 1, Prior::log_uniform))
                         .add("l", integer(1, 5))
                         .add("m", normal(0, 1, -1, 1))
                         .add("n", normal_integer(5, 2, 0, 10))
                         .add("o", choice({"x", 1, true}))
                         .add("p", categorical({"x", "y"}, {1, 3}))
                         .add("q", ordinal({1, 2, 4}))
                         .add("r", Spec{Spec::List{1, uniform(0, 1)}})
                         .condition("a", equals("o", "x"))
                         .condition("r", any_of({less("l", 3), in("q", {2, 4})}))
                         .forbid(all_of({equals("q", 1), not_equals("o", true)}))
                         .starting_point(Value{{"l", 2}})
                         .build();
  const char* text = R"(
kolo_space: 1
parameters:
  a: {uniform: [0, 1]}
  b: {quniform: [0, 1, 0.25]}
  c: {loguniform: {low: 0.001, high: 1}}
  d: {qloguniform: [0.5, 8, 0.5]}
  e: {randn: [1, 2]}
  f: {qrandn: [1, 2, 0.5]}
  g: {randint: [0, 9]}
  h: {qrandint: [0, 9, 3]}
  i: {lograndint: [1, 9]}
  j: {qlograndint: [2, 8, 2]}
  k: {real: [0.1, 1, log-uniform]}
  l: {integer: [1, 5]}
  m: {normal: [0, 1, -1, 1]}
  n: {normal_integer: [5, 2, 0, 10]}
  o: {choice: [x, 1, true]}
  p: {categorical: {values: [x, y], weights: [1, 3]}}
  q: {ordinal: [1, 2, 4]}
  r: [1, {uniform: [0, 1]}]
conditions:
  a: {equals: [o, x]}
  r: {or: [{less: [l, 3]}, {in: [q, [2, 4]]}]}
forbidden:
  - and: [{equals: [q, 1]}, {not_equals: [o, true]}]
starting_points:
  - {l: 2}
)";
  const auto read = Space::from_yaml(text);
  Random first(3), second(3);
  for (int i = 0; i < 200; ++i) {
    const Point point = built->sample(first);
    ASSERT_TRUE(same_point(point, read->sample(second)));
    ASSERT_EQ(built->config(point, first), read->config(point, second));
  }
  ASSERT_EQ(read->starting_points().size(), 1U);
}

TEST(SpaceJsonTest, ErrorsNamePathAndRule) {
  EXPECT_THAT(refusal_of(R"({"model": {"layers": [0, 1, {"units": {"quniform": [0, 1, 0.3]}}]}})"),
              AllOf(HasSubstr("space.json"), HasSubstr("model/layers/2/units"),
                    HasSubstr("multiples of q")));
  EXPECT_THAT(refusal_of(R"({"x": {"loguniform": [0, 1]}})"), HasSubstr("must be above 0"));
  EXPECT_THAT(refusal_of(R"({"x": {"uniform": [1, 0]}})"), HasSubstr("above the upper"));
  EXPECT_THAT(refusal_of(R"({"x": {"uniform": [1]}})"), HasSubstr("'high'"));
  EXPECT_THAT(refusal_of(R"({"x": {"randint": [1, 1]}})"), HasSubstr("no whole number"));
  EXPECT_THAT(refusal_of(R"({"x": {"randint": [0.5, 1]}})"), HasSubstr("whole numbers"));
  EXPECT_THAT(refusal_of(R"({"x": {"choice": []}})"), HasSubstr("nothing to choose"));
  EXPECT_THAT(refusal_of(R"({"x": {"grid_search": []}})"), HasSubstr("no values"));
  EXPECT_THAT(refusal_of(R"({"x": {"randn": [0, 0]}})"), HasSubstr("deviation"));
  EXPECT_THAT(refusal_of(R"({"a/b": 1})"), HasSubstr("hold no '/'"));
  EXPECT_THAT(refusal_of(R"({"x": {"eval": "2 +"}})"), AllOf(HasSubstr("x: "), HasSubstr("value")));
  std::string terms = "1";
  for (int i = 0; i < 200'000; ++i) terms += "+1";
  EXPECT_THAT(refusal_of(R"({"x": {"eval": ")" + terms + R"("}})"), HasSubstr("at most 10000"));
  EXPECT_THAT(refusal_of(R"([1])"), HasSubstr("dictionary"));
  EXPECT_THAT(refusal_of(R"({"kolo_space": 2})"), HasSubstr("version 2"));
  EXPECT_THAT(refusal_of(R"({"kolo_space": 1, "conditons": {}})"), HasSubstr("conditons"));
  EXPECT_THAT(refusal_of(R"({"kolo_space": 1, "parameters": {"a": {"choice": [1, 2]}},
                             "conditions": {"a": {"equal": ["a", 1]}}})"),
              HasSubstr("equals"));
}

TEST(SpaceJsonTest, SectionsAreKnownByTheirParameters) {
  const auto space = Space::from_json(R"({"parameters": {"a": {"choice": [1, 2]}},
                                          "starting_points": [{"a": 2}]})");
  EXPECT_EQ(space->varied_paths(), std::vector<std::string>{"a"});
  EXPECT_EQ(space->starting_points().size(), 1U);
  EXPECT_THAT(refusal_of(R"({"parameters": {"a": {"choice": [1, 2]}}, "conditons": {}})"),
              HasSubstr("section 'conditons' is unknown; did you mean 'conditions'?"));
  EXPECT_THAT(refusal_of(R"({"parameters": {"a": {"choice": [1, 2]}}, "b": 3})"),
              HasSubstr("put it under `parameters`, too"));
  // Names of the user's own.
  EXPECT_EQ(Space::from_json(R"({"parameters": {"choice": [1, 2]}, "b": 3})")->varied_paths(),
            std::vector<std::string>{"parameters"});
  EXPECT_EQ(Space::from_json(R"({"conditions": {"heat": {"uniform": [0, 1]}}})")->varied_paths(),
            std::vector<std::string>{"conditions/heat"});
}

TEST(SpaceJsonTest, SectionsBesideParametersAreNoConstants) {
  for (const char* section : {R"("starting_points": [{"a": 1}])", R"("forbidden": [])",
                              R"("conditions": {"a": {"equals": ["b", 1]}})"})
    EXPECT_THAT(refusal_of(std::string(R"({"a": {"choice": [1, 2]}, )") + section + "}"),
                HasSubstr("stands beside parameters; put the parameters under `parameters`"));
}

TEST(SpaceJsonTest, WhatLooksLikeADomainIsNoConstant) {
  EXPECT_THAT(refusal_of(R"({"m": {"lr": {"loguniforn": [1e-4, 1e-1]}}})"),
              AllOf(HasSubstr("m/lr: domain 'loguniforn' is unknown"),
                    HasSubstr("did you mean 'loguniform'?"),
                    HasSubstr("write {constant: {\"loguniforn\":[0.0001,0.1]}}")));
  EXPECT_THAT(refusal_of(R"({"x": {"int": [1, 10]}})"), HasSubstr("known: uniform"));
  EXPECT_THAT(refusal_of(R"({"x": {"unifrm": {"low": 0, "high": 1}}})"), HasSubstr("'uniform'?"));
  EXPECT_THAT(refusal_of(R"({"x": {"uniform": [0, 1], "q": 0.1}})"),
              HasSubstr("'uniform' stands beside 'q'"));
  EXPECT_THAT(refusal_of(R"x({"x": "tune.uniform(1, 2)"})x"), HasSubstr("{uniform: [1, 2]}"));
  // Parts of a configuration that cannot be meant as domains.
  const auto space = Space::from_json(
      R"x({"a": {"b": 1}, "c": {"d": {"e": "f(x)"}}, "g": [1, 2],
           "h": {"i": [{"uniform": [0, 1]}]}, "k": {"constant": {"layers": [64, 64]}},
           "m": {"const": {"layers": [64, 64]}}, "l": {"low": 1, "high": 2}})x");
  EXPECT_EQ(space->size(), 1U);
}

TEST(SpaceJsonTest, ContradictionsAreFoundWhenBuilding) {
  EXPECT_THAT(refusal_of(R"({"kolo_space": 1,
      "parameters": {"a": {"choice": [1, 2]}, "b": {"choice": [1, 2]}},
      "conditions": {"a": {"equals": ["b", 1]}, "b": {"equals": ["a", 1]}}})"),
              HasSubstr("a -> b"));
  EXPECT_THAT(refusal_of(R"({"kolo_space": 1, "parameters": {"a": {"choice": [1, 2]}},
      "forbidden": [{"in": ["a", [1, 2]]}]})"),
              HasSubstr("a in [1, 2]"));
  EXPECT_THAT(refusal_of(R"({"kolo_space": 1, "parameters": {"units": {"choice": [1, 2]}},
      "forbidden": [{"equals": ["unit", 1]}]})"),
              HasSubstr("did you mean 'units'"));
  EXPECT_THAT(refusal_of(R"({"kolo_space": 1, "parameters": {"a": {"choice": [1, 2]}},
      "starting_points": [{"a": 3}]})"),
              HasSubstr("a: 3 is not one of"));
}

TEST(SpaceJsonTest, EvalReadsOtherValues) {
  const auto space = Space::from_json(
      R"({"foo": {"eval": "2 + 2"}, "b": {"eval": "config.x.y * 2 if c == 'on' else -1"},
          "x": {"y": {"randint": [5, 6]}}, "c": "on", "d": {"eval": "b + 1"},
          "list": [1, 2], "e": {"eval": "list.1 // 2 ** 1"}, "k": {"constant": {"eval": "1"}}})");
  Random random(0);
  const Value config = space->config(space->sample(random), random);
  EXPECT_EQ(config.at_path("foo").to_string(), "4");
  EXPECT_EQ(config.at_path("b"), Value(10));
  EXPECT_EQ(config.at_path("d"), Value(11));
  EXPECT_EQ(config.at_path("e"), Value(1));
  EXPECT_EQ(config.at_path("k/eval"), Value("1"));
}

TEST(SpaceJsonTest, TextsThatGrowWithoutEndAreRefused) {
  // 16 bytes, doubled twenty times.
  std::string document = R"({"x": {"uniform": [0, 1]}, "s0": "aaaaaaaaaaaaaaaa")";
  for (int i = 1; i <= 20; ++i)
    document += R"(, "s)" + std::to_string(i) + R"(": {"eval": "s)" + std::to_string(i - 1) +
                " + s" + std::to_string(i - 1) + R"("})";
  const auto space = Space::from_json(document + "}");
  Random random(0);
  EXPECT_THAT(message_of([&] { (void)space->config(space->sample(random), random); }),
              HasSubstr("a text of 131072 bytes; at most 65536 are allowed"));
}

TEST(SpaceJsonTest, FunctionsThatWaitForEachOtherAreNamed) {
  const auto space =
      Space::from_json(R"({"a": {"eval": "b + 1"}, "b": {"eval": "c"}, "c": {"eval": "a"}})");
  Random random(0);
  EXPECT_THAT(message_of([&] { (void)space->config(space->sample(random), random); }),
              HasSubstr("a -> b -> c -> a"));
}

TEST(SpaceJsonTest, NamesHaveNoControlCharacters) {
  EXPECT_THAT(refusal_of(R"({"a\nb": {"uniform": [0, 1]}})"),
              AllOf(HasSubstr(R"("a\nb")"), HasSubstr("a control character")));
  EXPECT_THAT(refusal_of(R"({"m": {"x\u001b[31m": 1}})"), HasSubstr("a control character"));
  EXPECT_THAT(message_of([] { (void)Space::Builder().add("a\tb", uniform(0, 1)).build(); }),
              HasSubstr("a control character"));
}

TEST(SpaceJsonTest, DeepAndLongInputEndsInErrors) {
  const auto nested = [](std::size_t levels) {
    return R"({"x": {"uniform": [0, 1]}, "c": )" + std::string(levels, '[') +
           std::string(levels, ']') + "}";
  };
  EXPECT_THAT(refusal_of(nested(99)), HasSubstr("nothing was thrown"));
  EXPECT_THAT(refusal_of(nested(110)), HasSubstr("nested more than 100 deep"));
  std::string path = "a";
  for (int i = 0; i < 100'000; ++i) path += "/a";
  EXPECT_THAT(message_of([&] { (void)Space::Builder().add(path, uniform(0, 1)).build(); }),
              HasSubstr("more than 100 names"));
  EXPECT_THAT(refusal_of((R"({"x": {"eval": ")" + std::string(100000, '1') + "\"}}").c_str()),
              HasSubstr("at most 10000 are allowed"));
  EXPECT_THAT(refusal_of((R"({"x": {"eval": ")" + std::string(9000, '(') + "\"}}").c_str()),
              HasSubstr("too deeply"));
  EXPECT_THAT(refusal_of((R"({"x": {"eval": ")" + std::string(9000, '-') + "1\"}}").c_str()),
              HasSubstr("too deeply"));
}

}  // namespace
}  // namespace kolo::search

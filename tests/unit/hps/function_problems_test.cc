#include "hps/problem/function_problems.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numbers>
#include <set>

#include "hps/problem/functions.h"
#include "kolo/random.h"
#include "unit/hps/error_of.h"

namespace kolo::hps {
namespace {

using testing::DoubleNear;
using testing::ElementsAre;

const FunctionProblem& get(std::string_view name) {
  const FunctionProblem* found = find_function_problem("benchmark.hps." + std::string(name));
  if (found == nullptr) throw std::runtime_error("no problem " + std::string(name));
  return *found;
}

RunResult evaluate(const FunctionProblem& problem, Value config) {
  RunningJob job(0, std::move(config), ".");
  return problem.run(job);
}

Value point(std::initializer_list<double> values) {
  Value::Dict x;
  for (const double value : values) x["x" + std::to_string(x.size())] = value;
  return Value(std::move(x));
}

TEST(FunctionProblemsTest, HaveTheirOptimaAndNothingBetter) {
  int known = 0;
  for (const FunctionProblem& row : function_problems()) {
    SCOPED_TRACE(row.name);
    const HpProblem problem = row.make();
    const auto space = problem.space();
    EXPECT_FALSE(row.summary.empty());
    if (row.optimum) {
      ++known;
      EXPECT_EQ(problem.objectives(), 1U);
      problem.check_configuration(row.best);
      EXPECT_NEAR(evaluate(row, row.best).objectives.at(0), *row.optimum, 1e-8);
    }
    Random random(11);
    for (int i = 0; i < 500; ++i) {
      const RunResult result = evaluate(row, space->config(space->sample(random), random));
      if (result.failed()) continue;
      ASSERT_EQ(result.objectives.size(), problem.objectives());
      for (const double value : result.objectives) ASSERT_TRUE(std::isfinite(value));
      if (row.optimum) {
        ASSERT_LE(result.objectives[0], *row.optimum + 1e-9);
      }
    }
    // Nor is there anything better close to the optimum.
    if (!row.optimum || space->has_conditions() || space->parameters()[0].is_discrete()) continue;
    const search::Point best = space->point(row.best);
    for (int i = 0; i < 500; ++i) {
      search::Point near = best;
      for (std::size_t j = 0; j < near.size(); ++j)
        near[j] = space->nearest(j, near[j] + 0.01 * random.normal());
      ASSERT_LE(evaluate(row, space->config(near, random)).objectives[0], *row.optimum + 1e-8);
    }
  }
  EXPECT_EQ(known, 17);
}

// Values from the definitions, worked out apart from this code.
TEST(FunctionProblemsTest, HaveTheirValuesElsewhere) {
  const Value five = point({0.5, -1, 2, 1.5, -0.5});
  const Value ten = point({0.5, -1, 2, 1.5, -0.5, 1, 0, -2, 3, 0.25});
  const std::pair<const char*, std::pair<Value, double>> expected[] = {
      {"polynome2", {ten, 21.8125}},
      {"linear", {point({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), 55}},
      {"ackley", {five, 6.307920299096711}},
      {"griewank", {five, 0.8095366792579942}},
      {"levy", {five, 2.22983417368267}},
      {"dixonprice", {ten, 4516.90625}},
      {"saddle", {ten, 6.0599175347222225}},
      {"branin", {point({1, 2}), 21.62763539206238}},
      {"easom", {point({3, 2.5}), -0.51506478998487}},
      {"hartmann6D", {point({0.1, 0.2, 0.3, 0.4, 0.5, 0.6}), -1.4069105761385297}},
      {"michal", {point({0.5, 1, 1.5, 2, 2.5}), -0.23490942170244353}},
      {"rosen", {five, 1643}},
      {"schwefel", {point({100, -200, 300, -400, 0}), 3014.230840225834}},
      {"shekel", {point({1, 2, 3, 4}), -0.30748013259463425}},
  };
  for (const auto& [name, value] : expected)
    EXPECT_NEAR(evaluate(get(name), value.first).objectives.at(0), -value.second, 1e-9) << name;
}

TEST(FunctionProblemsTest, BraninHasThreeOptima) {
  for (const Value& best : {point({-std::numbers::pi, 12.275}), point({std::numbers::pi, 2.275}),
                            point({9.42477796, 2.475})})
    EXPECT_NEAR(evaluate(get("branin"), best).objectives.at(0), -0.397887358, 1e-8);
}

TEST(FunctionProblemsTest, MichalewiczServesAnyDimension) {
  EXPECT_NEAR(evaluate(get("michal"), point({2.20290552, 1.57079633})).objectives.at(0), 1.8013,
              1e-4);
}

TEST(FunctionProblemsTest, DtlzOfTwoObjectives) {
  const Value x = point({0.3, 0.6, 0.4, 0.5, 0.9});
  const auto expect = [&](const char* name, double first, double second) {
    EXPECT_THAT(evaluate(get(name), x).objectives,
                ElementsAre(DoubleNear(-first, 1e-9), DoubleNear(-second, 1e-9)))
        << name;
  };
  expect("dtlz1", 2.85, 6.65);
  expect("dtlz2", 1.051387698542274, 0.5357087896926651);
  expect("dtlz3", 16.929123959579, 8.625819495051395);
  expect("dtlz4", 1.18, 0);
  expect("dtlz5", 1.051387698542274, 0.5357087896926651);
  expect("dtlz6", 4.263640858018623, 2.172433524664751);
  expect("dtlz7", 0.3, 14.407294901687514);
  expect("dtlz2_failures", 1.051387698542274, 0.5357087896926651);
  // The first variable is a position and may be small; the others are distances.
  EXPECT_FALSE(evaluate(get("dtlz2_failures"), point({0.1, 0.6, 0.4, 0.5, 0.9})).failed());
  EXPECT_EQ(evaluate(get("dtlz2_failures"), point({0.1, 0.6, 0.4, 0.2, 0.9})).failure,
            "F_distance");
}

TEST(FunctionProblemsTest, DtlzOfThreeObjectives) {
  const double x[] = {0.3, 0.6, 0.4, 0.5};
  const auto near = [](double value) { return DoubleNear(value, 1e-9); };
  EXPECT_THAT(functions::dtlz(1, x, 3), ElementsAre(near(0.18), near(0.12), near(0.7)));
  EXPECT_THAT(
      functions::dtlz(2, x, 3),
      ElementsAre(near(0.5289576995604424), near(0.7280478143690157), near(0.45853040473694223)));
  EXPECT_THAT(
      functions::dtlz(5, x, 3),
      ElementsAre(near(0.6353466942856092), near(0.6373260123297374), near(0.45853040473694223)));
  EXPECT_THAT(functions::dtlz(7, x, 3), ElementsAre(near(0.3), near(0.6), near(17.509966053063)));
}

TEST(FunctionProblemsTest, DtlzFrontsAreWhereTheyAreSaidToBe) {
  for (const double place : {0.0, 0.25, 0.5, 1.0}) {
    const double middle[] = {place, 0.5, 0.5, 0.5, 0.5}, zero[] = {place, 0, 0, 0, 0};
    const auto plane = functions::dtlz(1, middle, 2);
    EXPECT_NEAR(plane[0] + plane[1], 0.5, 1e-12);
    for (const int number : {2, 3, 4, 5, 6}) {
      const auto circle = functions::dtlz(number, number == 6 ? zero : middle, 2);
      EXPECT_NEAR(circle[0] * circle[0] + circle[1] * circle[1], 1, 1e-12) << number;
    }
    const auto pieces = functions::dtlz(7, zero, 2);
    EXPECT_NEAR(pieces[1], 4 - place * (1 + std::sin(3 * std::numbers::pi * place)), 1e-12);
  }
}

TEST(FunctionProblemsTest, ToysAreAsDescribed) {
  EXPECT_EQ(evaluate(get("toy_sum"), Value{{"x", 3}, {"y", 4}}).objectives[0], 7);
  EXPECT_EQ(get("toy_forbidden").make().space()->cardinality(), 121U);
  EXPECT_THROW(get("toy_forbidden").make().check_configuration(Value{{"x", 0}, {"y", 0}}), Error);
  const HpProblem conditional = get("toy_conditional").make();
  const Value product{{"function", "f2"}, {"f2_x", 0.5}, {"f2_y", 0.5}};
  conditional.check_configuration(product);
  EXPECT_EQ(evaluate(get("toy_conditional"), product).objectives[0], 0.25);
}

TEST(FunctionProblemsTest, NamesAreThoseOfTheReference) {
  const FunctionProblem* polynome = find_function_problem("benchmark.hps.polynome2");
  ASSERT_NE(polynome, nullptr);
  EXPECT_EQ(full_name(*polynome), "benchmark.hps.polynome2");
  for (const char* name :
       {"deephyper.benchmark.hps.polynome2.Problem", "deephyper.benchmark.hps.polynome2.run",
        "benchmark.hps.polynome2.problem.Problem", "benchmark.hps.polynome2.model_run.run"})
    EXPECT_EQ(find_function_problem(name), polynome) << name;
  EXPECT_EQ(find_function_problem("polynome2"), nullptr);
  EXPECT_EQ(find_function_problem("benchmark.hps.polynome3"), nullptr);
  const HpProblem problem = polynome->make();
  EXPECT_EQ(problem.space()->size(), 10U);
  ASSERT_EQ(problem.starting_points().size(), 1U);
  EXPECT_EQ(evaluate(*polynome, problem.starting_points()[0]).objectives[0], -1000);
  std::set<std::string_view> names;
  for (const FunctionProblem& row : function_problems()) EXPECT_TRUE(names.insert(row.name).second);
}

TEST(FunctionProblemsTest, MissingVariablesAreNamed) {
  const Error error = error_of([] { (void)evaluate(get("branin"), point({1})); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), testing::HasSubstr("has 1 of the variables x0, x1 …"));
}

}  // namespace
}  // namespace kolo::hps

#include "kolo/hps/problem.h"

#include <gmock/gmock.h>

#include <set>

#include "kolo/error.h"
#include "kolo/random.h"
#include "unit/hps/error_of.h"

namespace kolo::hps {
namespace {

using search::Parameter;
using testing::ElementsAre;
using testing::HasSubstr;

Parameter parameter_of(const HpValue& value) {
  HpProblem problem;
  problem.add_hyperparameter(value, "p");
  return problem.space()->parameters()[0];
}

TEST(HpValueTest, BracesMeanWhatTuplesAndListsMean) {
  const Parameter whole = parameter_of({1, 10});
  EXPECT_EQ(whole.kind, Parameter::Kind::integer);
  EXPECT_EQ(whole.low, 1);
  EXPECT_EQ(whole.high, 10);  // both ends are values
  EXPECT_FALSE(whole.log);

  for (const HpValue& value : {HpValue{0.0, 1.0}, HpValue{0, 1.0}, HpValue{0.0, 1}}) {
    EXPECT_EQ(parameter_of(value).kind, Parameter::Kind::real);
    EXPECT_EQ(parameter_of(value).high, 1);
  }
  EXPECT_TRUE(parameter_of({1, 100, "log-uniform"}).log);
  EXPECT_EQ(parameter_of({1, 100, "log-uniform"}).kind, Parameter::Kind::integer);
  EXPECT_TRUE(parameter_of({1e-4, 1e-1, "log-uniform"}).log);
  EXPECT_FALSE(parameter_of({1e-4, 1e-1, "uniform"}).log);

  EXPECT_EQ(parameter_of({"sgd", "adam"}).kind, Parameter::Kind::categorical);
  EXPECT_EQ(parameter_of({true, false}).kind, Parameter::Kind::categorical);
  EXPECT_EQ(parameter_of({1, 2, 3, "many"}).kind, Parameter::Kind::categorical);
  EXPECT_EQ(parameter_of({8, 16, 32}).kind, Parameter::Kind::ordinal);
  EXPECT_EQ(parameter_of(Value::List{8, 16}).kind, Parameter::Kind::ordinal);
  EXPECT_THAT(*parameter_of({0.1, 0.2, 0.5}).choices, ElementsAre(0.1, 0.2, 0.5));
}

TEST(HpValueTest, NormalsAreCutOff) {
  const Parameter real = parameter_of({{"mu", 0.0}, {"sigma", 2}, {"lower", -5}, {"upper", 5}});
  EXPECT_TRUE(real.normal);
  EXPECT_EQ(real.kind, Parameter::Kind::real);
  EXPECT_EQ(real.sd, 2);
  EXPECT_EQ(real.low, -5);
  const Parameter whole = parameter_of(Normal{.mu = 8, .sigma = 2.5, .lower = 1, .upper = 16});
  EXPECT_EQ(whole.kind, Parameter::Kind::integer);
  EXPECT_EQ(whole.high, 16);
  EXPECT_THAT(error_of([] {
                HpValue({{"mean", 0.0}, {"sigma", 1.0}});
              }).message(),
              HasSubstr("known: mu, sigma, lower, upper"));
  EXPECT_THAT(error_of([] {
                HpValue({{"mu", 0.0}, {"lower", 1.0}});
              }).message(),
              HasSubstr("needs mu and sigma"));
}

TEST(HpValueTest, PriorsAreChecked) {
  const Error error = error_of([] { HpValue({1, 10, "loguniform"}); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), HasSubstr("prior 'loguniform' is unknown; known: uniform, "));
  EXPECT_THAT(error_of([] {
                parameter_of({0.0, 1.0, "log-uniform"});
              }).message(),
              HasSubstr("p: real(0, 1"));
  EXPECT_EQ(error_of([] { HpValue(Value::List{}); }).code(), ErrorCode::invalid_argument);
}

TEST(HpValueTest, ConstantsAndDomainsAreTakenAsTheyAre) {
  HpProblem problem;
  problem.add_hyperparameter(7, "epochs");
  problem.add_hyperparameter("relu", "activation");
  problem.add_hyperparameter(search::quniform(0, 1, 0.25), "dropout");
  EXPECT_EQ(problem.space()->size(), 1U);
  EXPECT_THAT(problem.hyperparameter_names(), ElementsAre("activation", "dropout", "epochs"));
  EXPECT_EQ(problem.default_configuration(),
            (Value{{"activation", "relu"}, {"dropout", 0.5}, {"epochs", 7}}));
}

HpProblem network() {
  HpProblem problem;
  problem.add_hyperparameters({{{1, 9}, "layers", std::nullopt},
                               {{1e-4, 1e-2, "log-uniform"}, "lr", std::nullopt},
                               {{"adam", "sgd"}, "optimizer", "sgd"},
                               {{0.0, 1.0}, "momentum", 0.9},
                               {{16, 32, 64}, "model/units", std::nullopt}});
  problem.add_condition("momentum", search::equals("optimizer", "sgd"));
  return problem;
}

TEST(HpProblemTest, DefaultsAreMiddlesFirstsAndWhatIsGiven) {
  const Value defaults = network().default_configuration();
  EXPECT_EQ(defaults.at_path("layers"), Value(5));
  EXPECT_NEAR(defaults.at_path("lr").as_number(), 1e-3, 1e-12);
  EXPECT_EQ(defaults.at_path("optimizer"), Value("sgd"));
  EXPECT_EQ(defaults.at_path("momentum"), Value(0.9));
  EXPECT_EQ(defaults.at_path("model/units"), Value(16));

  HpProblem other = network();
  other.add_condition("momentum", search::equals("optimizer", "adam"));  // can never hold now
  EXPECT_EQ(other.default_configuration().find_path("momentum"), nullptr);
}

TEST(HpProblemTest, ConfigurationsAreChecked) {
  HpProblem problem = network();
  problem.add_forbidden_clause(
      search::all_of({search::equals("optimizer", "adam"), search::greater("layers", 5)}));
  Value good{{"layers", 5}, {"lr", 0.001}, {"optimizer", "adam"}};
  good.as_dict()["model"] = Value{{"units", 32}};
  problem.check_configuration(good);
  const auto refused = [&](std::string_view key, Value value) {
    Value changed = good;
    changed.as_dict()[std::string(key)] = std::move(value);
    return error_of([&] { problem.check_configuration(changed); }).message();
  };
  EXPECT_THAT(refused("layers", 10), HasSubstr("layers: 10"));
  EXPECT_THAT(refused("layers", 6), HasSubstr("is forbidden"));
  EXPECT_THAT(refused("momentum", 0.5), HasSubstr("its condition does not hold"));
  EXPECT_THAT(refused("optimiser", "sgd"), HasSubstr("did you mean 'optimizer'"));
  good.as_dict().erase("lr");
  EXPECT_THAT(error_of([&] { problem.check_configuration(good); }).message(), HasSubstr("lr: "));

  problem.set_constraint_fn([](const Value& config) {
    return config.at_path("layers").as_number() * config.at_path("model/units").as_number() <= 64;
  });
  good.as_dict()["lr"] = 0.001;
  EXPECT_THAT(error_of([&] { problem.check_configuration(good); }).message(),
              HasSubstr("constraint function"));
  Random random(3);
  for (int i = 0; i < 200; ++i) {
    const Value config = problem.space()->config(problem.space()->sample(random), random);
    EXPECT_LE(config.at_path("layers").as_number() * config.at_path("model/units").as_number(), 64);
  }
}

TEST(HpProblemTest, MistakesChangeNothing) {
  HpProblem problem = network();
  const std::string before = problem.to_json();
  EXPECT_EQ(error_of([&] {
              problem.add_hyperparameter({1, 2}, "lr");
            }).code(),
            ErrorCode::already_exists);
  EXPECT_EQ(error_of([&] {
              problem.add_hyperparameter({1, 2}, "lr/decay");
            }).code(),
            ErrorCode::already_exists);
  EXPECT_THAT(error_of([&] {
                problem.add_hyperparameter({5, 2}, "depth");
              }).message(),
              HasSubstr("depth: integer(5, 2"));
  EXPECT_THAT(error_of([&] {
                problem.add_hyperparameter({1, 2}, "depth", 3);
              }).message(),
              HasSubstr("depth: 3"));
  EXPECT_EQ(error_of([&] {
              problem.add_hyperparameter({1, 2}, "");
            }).code(),
            ErrorCode::invalid_argument);
  EXPECT_THAT(error_of([&] {
                problem.add_hyperparameters({{{1, 2}, "a", std::nullopt}, {{2, 1}, "b", {}}});
              }).message(),
              HasSubstr("b: "));
  EXPECT_THAT(error_of([&] {
                problem.add_condition("nesterov", search::equals("optimizer", "sgd"));
              }).message(),
              HasSubstr("nesterov"));
  EXPECT_THAT(
      error_of([&] { problem.add_condition("lr", search::equals("optimiser", "sgd")); }).message(),
      HasSubstr("did you mean 'optimizer'"));
  EXPECT_EQ(error_of([&] { problem.add_forbidden_clause(search::greater("layers", 0)); }).code(),
            ErrorCode::failed_precondition);
  EXPECT_THAT(error_of([&] {
                problem.add_starting_point({{"layers", 12}});
              }).message(),
              HasSubstr("layers: 12"));
  EXPECT_EQ(problem.to_json(), before);
  EXPECT_EQ(problem.space()->size(), 5U);
  EXPECT_THAT(error_of([] { (void)HpProblem().space(); }).message(),
              HasSubstr("no hyperparameters"));
}

TEST(HpProblemTest, StartingPointsMayBePartialButNotForbidden) {
  HpProblem problem = network();
  problem.add_starting_point({{"layers", 3}, {"optimizer", "adam"}});
  ASSERT_EQ(problem.starting_points().size(), 1U);
  EXPECT_EQ(problem.space()->starting_points()[0].at_path("layers"), Value(3));
  problem.add_forbidden_clause(search::equals("layers", 4));
  EXPECT_THAT(error_of([&] {
                problem.add_starting_point({{"layers", 4}});
              }).message(),
              HasSubstr("contradicts the rules of the space"));
}

TEST(HpProblemTest, AForbiddenDefaultIsAnError) {
  HpProblem problem = network();
  problem.add_forbidden_clause(search::equals("layers", 5));
  EXPECT_EQ(error_of([&] { (void)problem.default_configuration(); }).code(),
            ErrorCode::failed_precondition);
}

TEST(HpProblemTest, TextAndBackIsTheSameProblem) {
  HpProblem problem = network();
  problem.add_hyperparameter(Normal{.mu = 0.5, .sigma = 0.1, .lower = 0.0}, "noise");
  problem.add_hyperparameter(search::categorical({"a", true}, {1, 3}), "kind", "a");
  problem.add_hyperparameter(Value{{"uniform", 1}}, "fixed");
  problem.add_condition(
      "noise", search::any_of({search::in("layers", {1, 2}), search::less("model/units", 64)}));
  problem.add_condition("noise", search::not_equals("kind", true));
  problem.add_forbidden_clause(search::equals("layers", 4));
  problem.add_starting_point({{"layers", 3}});
  problem.set_objectives(2);

  const HpProblem again = HpProblem::from_json(problem.to_json());
  EXPECT_EQ(again.to_json(), problem.to_json());
  EXPECT_EQ(again.hyperparameter_names(), problem.hyperparameter_names());
  EXPECT_EQ(again.default_configuration(), problem.default_configuration());
  EXPECT_EQ(again.objectives(), 2U);
  EXPECT_EQ(again.starting_points(), problem.starting_points());
  Random left(5), right(5);
  for (int i = 0; i < 100; ++i)
    EXPECT_TRUE(search::same_point(problem.space()->sample(left), again.space()->sample(right)));

  problem.set_constraint_fn([](const Value&) { return true; });
  EXPECT_EQ(error_of([&] { (void)problem.to_json(); }).code(), ErrorCode::unsupported);
  HpProblem function;
  function.add_hyperparameter(search::sample_from([] { return Value(1); }), "f");
  EXPECT_THAT(error_of([&] { (void)function.to_json(); }).message(), HasSubstr("f: a function"));
}

TEST(HpProblemTest, SpacesAreProblems) {
  const HpProblem tree = HpProblem::from_yaml("{lr: {loguniform: [0.001, 1]}, space: big}");
  EXPECT_THAT(tree.hyperparameter_names(), ElementsAre("lr", "space"));
  const HpProblem group = HpProblem::from_yaml("{space: {uniform: [0, 1]}, lr: 1}");
  EXPECT_THAT(group.hyperparameter_names(), ElementsAre("lr", "space"));
  EXPECT_EQ(group.space()->varied_paths(), std::vector<std::string>{"space"});
  const HpProblem named = HpProblem::from_yaml("{program: {choice: [a, b]}, lr: 1}");
  EXPECT_THAT(named.hyperparameter_names(), ElementsAre("lr", "program"));
  const HpProblem sections = HpProblem::from_yaml(
      "kolo_space: 1\nparameters: {a: {integer: [1, 3]}, b: {choice: [x, y]}}\n"
      "conditions: {a: {equals: [b, x]}}\nstarting_points: [{b: y}]\n");
  EXPECT_EQ(sections.starting_points().size(), 1U);
  EXPECT_TRUE(sections.space()->has_conditions());
  const HpProblem whole = HpProblem::from_yaml(
      "space: {a: {integer: [1, 3]}}\ndefault_values: {a: 3}\nstarting_points: [{a: 1}]\n");
  EXPECT_EQ(whole.default_configuration(), (Value{{"a", 3}}));
  EXPECT_EQ(whole.starting_points().size(), 1U);
}

TEST(HpProblemTest, FilesAreCheckedWithTheirNames) {
  const auto refused = [](std::string_view text) {
    return error_of([&] { (void)HpProblem::from_yaml(text, "p.yaml"); }).message();
  };
  EXPECT_THAT(refused("{a: {integer: [3, 1]}}"), HasSubstr("p.yaml: a: integer(3, 1"));
  EXPECT_THAT(refused("{kolo_problem: 2, space: {}}"), HasSubstr("p.yaml: version 2"));
  EXPECT_THAT(refused("{kolo_problem: 1, spaces: {}}"), HasSubstr("did you mean 'space'"));
  EXPECT_THAT(refused("{space: {a: {integer: [1, 3]}}, default_values: {a: 7}}"),
              HasSubstr("a: 7"));
  EXPECT_THAT(refused("{space: {a: {integer: [1, 3]}}, default_values: {b: 7}}"),
              HasSubstr("'b' is unknown"));
  EXPECT_THAT(refused("{space: {a: {integer: [1, 3]}}, starting_points: [{a: 9}]}"),
              HasSubstr("a: 9"));
  EXPECT_THAT(refused("[1, 2]"), HasSubstr("a space must be a dictionary"));
  // A misspelt section is no parameter.
  EXPECT_THAT(refused("{space: {x: {integer: [1, 3]}}, progam: [./prog]}"),
              HasSubstr("section 'progam' is unknown; did you mean 'program'?"));
  EXPECT_THAT(refused("{parameters: {x: {integer: [1, 3]}}, condition: {}}"),
              HasSubstr("did you mean 'conditions'?"));
  EXPECT_THAT(refused("{space: {x: {integer: [1, 3]}}, epochs: 3}"),
              HasSubstr("put it beside the others in the space"));
  for (const char* section : {"program: [./prog]", "starting_points: [{x: 1}]",
                              "default_values: {x: 1}", "forbidden: [{equals: [x, 1]}]"})
    EXPECT_THAT(refused("{x: {integer: [1, 3]}, " + std::string(section) + "}"),
                HasSubstr("stands beside parameters; put the parameters under `space`"));
  EXPECT_THAT(refused("{space: {a: 1}, objectives: 0}"), HasSubstr("needs an objective"));
}

}  // namespace
}  // namespace kolo::hps

// Describing problems: spaces, configurations, data that fit, names.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "kolo/nas/problem.h"
#include "kolo/random.h"
#include "unit/nas/small_problem.h"

namespace kolo::nas {
namespace {

using test::error_of;
using test::plane;
using test::small_problem;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(NaProblem, SpaceHasArchitectureAndSearchedHyperparameters) {
  NaProblem problem = small_problem();
  EXPECT_EQ(problem.space()->size(), 1U);
  problem.hyperparameters({{"learning_rate", search::loguniform(1e-4, 1e-1)},
                           {"batch_size", search::ordinal({8, 16, 32})}});
  problem.loss(search::choice({"mse", "mae"}));
  const auto space = problem.space();
  std::vector<std::string> paths;
  for (const auto& parameter : space->parameters()) paths.push_back(parameter.path);
  EXPECT_THAT(paths, ElementsAre("arch_seq/0", "batch_size", "learning_rate", "loss"));
  EXPECT_EQ(space->parameters()[0].cardinality, 10U);
  Random random(1);
  const Value config = space->config(space->sample(random), random);
  const auto arch_seq = NaProblem::arch_seq_of(config);
  ASSERT_EQ(arch_seq.size(), 1U);
  const Value whole = problem.config(arch_seq, config);
  EXPECT_EQ(whole.at_path("hyperparameters/learning_rate"), config.at_path("learning_rate"));
  EXPECT_EQ(whole.at_path("hyperparameters/num_epochs"), Value(4));
  EXPECT_EQ(whole.at_path("arch_seq"), config.at_path("arch_seq"));
  EXPECT_EQ(parse_json(problem.to_json(), "problem")["searched"].size(), 3U);
  EXPECT_GT(problem.model(arch_seq)->num_parameters(), 0);
}

TEST(NaProblem, CopiesAreIndependent) {
  const NaProblem original = small_problem();
  NaProblem changed = original;
  changed.search_space("simple_deep", {{"num_layers", 2}});
  EXPECT_EQ(original.space()->size(), 1U);
  EXPECT_EQ(changed.space()->size(), 2U);
}

TEST(NaProblem, LoadsDataOnce) {
  int calls = 0;
  NaProblem problem = small_problem();
  problem.load_data([&] {
    ++calls;
    return DataSplit{plane(20), plane(10)};
  });
  EXPECT_EQ(calls, 0);
  (void)problem.space();
  (void)problem.data();
  const NaProblem copy = problem;
  (void)copy.data();
  EXPECT_EQ(calls, 1);
}

TEST(NaProblem, PreparesData) {
  NaProblem problem = small_problem();
  const DataSplit& data = problem.data();
  EXPECT_EQ(data.train.targets[0].sizes(), (std::vector<std::int64_t>{240, 1}));
  EXPECT_NEAR(data.train.inputs[0].mean().item<double>(), 0, 1e-5) << "scaled by default";
  EXPECT_THAT(problem.input_shapes(), ElementsAre(Shape{2}));
  problem.load_data([] {
    const torch::Tensor x = torch::rand({6, 3}) + 5;
    return DataSplit{{{x}, {torch::tensor({0, 1, 2, 0, 1, 2}, torch::kInt64)}},
                     {{x}, {torch::tensor({0, 1, 3, 0, 1, 2}, torch::kInt64)}}};
  });
  EXPECT_THAT(problem.output_shapes(), ElementsAre(Shape{4})) << "a score per class";
  EXPECT_GT(problem.data().train.inputs[0].min().item<double>(), 4.9) << "classes: not scaled";
}

TEST(NaProblem, SaysWhatIsWrong) {
  NaProblem problem = small_problem();
  const auto with = [&](Samples train, Samples validation) {
    problem.load_data([=] { return DataSplit{train, validation}; });
    return error_of([&] { (void)problem.data(); });
  };
  EXPECT_THAT(with(plane(5), {{torch::rand({3, 2})}, {torch::rand({4})}}),
              HasSubstr("target 0 of the validation data has 4 samples"));
  EXPECT_THAT(with(plane(5), {{torch::rand({3, 9})}, {torch::rand({3})}}),
              HasSubstr("input 0 has another shape"));
  EXPECT_THAT(with(plane(5), {{}, {}}), HasSubstr("no inputs"));
  NaProblem empty;
  EXPECT_THAT(error_of([&] { (void)empty.space(); }), HasSubstr("load_data"));
  EXPECT_THAT(error_of([&] { problem.loss("msee"); }), HasSubstr("did you mean 'mse'"));
  EXPECT_THAT(error_of([&] { problem.metrics({"r3"}); }), HasSubstr("r2"));
  EXPECT_THAT(error_of([&] { problem.search_space("one_leyer"); }), HasSubstr("one_layer"));
  EXPECT_THAT(error_of([&] { problem.preprocessing("scaler"); }), HasSubstr("minmaxstdscaler"));
  EXPECT_THAT(error_of([&] { problem.objective("val_r2__best"); }), HasSubstr("__max"));
  EXPECT_THAT(error_of([&] {
                problem.hyperparameters({{"learning_rat", 1}});
              }),
              HasSubstr("learning_rate"));
  EXPECT_THAT(error_of([&] {
                problem.hyperparameters({{"num_epochs", 0}});
              }),
              HasSubstr("num_epochs"));
  EXPECT_THAT(error_of([&] {
                (void)problem.hyperparameters_of(Value{{"batchsize", 1}});
              }),
              HasSubstr("batch_size"));
  EXPECT_THAT(error_of([&] {
                (void)NaProblem::arch_seq_of(Value{{"x", 1}});
              }),
              HasSubstr("arch_seq"));
}

TEST(NaProblem, SeveralOutputsNeedLossesForAll) {
  NaProblem problem = small_problem();
  problem.load_data([] {
    Samples samples = plane(40);
    samples.targets.push_back(samples.targets[0] * 2);
    return DataSplit{samples, samples};
  });
  EXPECT_EQ(problem.losses().size(), 2U);
  problem.loss({{"output_1", "mae"}, {"output_0", "mse"}}, {{"output_1", 0.25}});
  EXPECT_EQ(problem.losses()[1].name, "mae");
  EXPECT_EQ(problem.losses()[1].weight, 0.25);
  EXPECT_EQ(problem.losses()[0].weight, 1);
  problem.loss({{"output_0", "mse"}});
  EXPECT_THAT(error_of([&] { (void)problem.losses(); }), HasSubstr("output_1 has no loss"));
  problem.loss({{"output_0", "mse"}, {"output_2", "mse"}});
  EXPECT_THAT(error_of([&] { (void)problem.losses(); }), HasSubstr("'output_2' does not exist"));
}

TEST(Catalog, KnowsTheNamesOfTheReference) {
  for (const char* name : {"benchmark.nas.linear_reg", "deephyper.benchmark.nas.linearReg.Problem",
                           "linearReg", "linear_reg"})
    EXPECT_EQ(load_na_problem(name).name, "benchmark.nas.linear_reg") << name;
  EXPECT_EQ(load_na_problem("deephyper.benchmark.nas.polynome2Reg.Problem").name,
            "benchmark.nas.polynome2_reg");
  EXPECT_EQ(load_na_problem("linearRegMultiVar").name, "benchmark.nas.linear_reg_multivar");
  EXPECT_EQ(load_na_problem("linearRegMultiInputsGen").name,
            "benchmark.nas.linear_reg_multi_inputs");
  EXPECT_THAT(error_of([] { (void)load_na_problem("benchmark.nas.linear_rex"); }),
              testing::AllOf(HasSubstr("did you mean 'benchmark.nas.linear_reg'"),
                             HasSubstr("benchmark.nas.digits_dense")));
  EXPECT_THAT(error_of([] { (void)load_na_problem("missing.yaml"); }), HasSubstr("no such file"));
}

TEST(Catalog, BenchmarkProblemsAreWhatTheySay) {
  const auto shapes = [](const char* name) {
    const NaProblem problem = load_na_problem(name).problem;
    return std::pair(problem.input_shapes(), problem.output_shapes());
  };
  using Shapes = std::vector<Shape>;
  EXPECT_EQ(shapes("linear_reg"), std::pair(Shapes{{10}}, Shapes{{1}}));
  EXPECT_EQ(shapes("linear_reg_multivar"), std::pair(Shapes{{10}}, Shapes{{2}}));
  EXPECT_EQ(shapes("linear_reg_multi_inputs"), std::pair(Shapes({{5}, {5}}), Shapes{{1}}));
  EXPECT_EQ(shapes("linear_reg_multi_loss"), std::pair(Shapes{{10}}, Shapes({{10}, {1}})));
  EXPECT_EQ(shapes("digits_dense"), std::pair(Shapes{{64}}, Shapes{{10}}));
  EXPECT_EQ(shapes("digits"), std::pair(Shapes{{1, 8, 8}}, Shapes{{10}}));

  const NaProblem linear = load_na_problem("linear_reg").problem;
  const DataSplit& data = linear.data();
  EXPECT_EQ(data.train.size(), 80'000);
  EXPECT_EQ(data.validation.size(), 20'000);
  const torch::Tensor& x = data.train.inputs[0];
  EXPECT_GT(x.min().item<double>(), 1);
  EXPECT_LE(x.max().item<double>(), 100);
  EXPECT_TRUE(torch::allclose(data.train.targets[0], x.sum(1, true)));
  EXPECT_EQ(linear.architectures()->size(), 10);
  const NaProblem polynome2 = load_na_problem("polynome2_reg").problem;
  EXPECT_EQ(polynome2.architectures()->size(), 1'906'624);
}

/// A folder with a table y = 3·a - b and a problem file.
class ProblemFile : public testing::Test {
 protected:
  ProblemFile() {
    std::string table = "a,b,y\n";
    for (int i = 0; i < 50; ++i)
      table += std::to_string(i % 7) + "," + std::to_string(i % 5) + "," +
               std::to_string(3 * (i % 7) - i % 5) + "\n";
    write_file_atomically(dir_.path() / "table.csv", table);
  }
  LoadedNaProblem load(const std::string& text) {
    write_file_atomically(dir_.path() / "mine.yaml", text);
    return load_na_problem((dir_.path() / "mine.yaml").string());
  }
  std::string error(const std::string& text) {
    return error_of([&] { (void)load(text).problem.data(); });
  }
  TempDir dir_;
};

TEST_F(ProblemFile, IsAProblem) {
  const LoadedNaProblem loaded = load(R"(
space: dense_skip_co
settings: {num_layers: 2}
data: {csv: table.csv, target: y, validation: 0.2}
hyperparameters:
  batch_size: 10
  learning_rate: {loguniform: [0.001, 0.1]}
  num_epochs: 2
loss: {choice: [mse, huber]}
metrics: [r2, mae]
objective: val_r2__max
)");
  EXPECT_EQ(loaded.name, "mine");
  const DataSplit& data = loaded.problem.data();
  EXPECT_EQ(data.train.size(), 40);
  EXPECT_EQ(data.validation.size(), 10);
  EXPECT_TRUE(loaded.problem.space()->find("learning_rate").has_value());
  EXPECT_TRUE(loaded.problem.space()->find("loss").has_value());
  Random random(1);
  const auto space = loaded.problem.space();
  const hps::RunResult result =
      test::run_alpha(loaded.problem, space->config(space->sample(random), random));
  EXPECT_FALSE(result.failed()) << result.failure;
}

TEST_F(ProblemFile, TakesClassesAndBuiltInData) {
  const auto classes = load(
      "{space: one_layer, loss: cross_entropy, metrics: [acc], "
      "objective: val_acc, data: {csv: table.csv, target: b, classes: true}}");
  EXPECT_THAT(classes.problem.output_shapes(), ElementsAre(Shape{5}));
  const auto digits = load("{space: dense_skip_co, data: digits_dense, loss: cross_entropy}");
  EXPECT_THAT(digits.problem.output_shapes(), ElementsAre(Shape{10}));
}

TEST_F(ProblemFile, SaysWhatIsWrong) {
  EXPECT_THAT(error("{space: one_layer}"), HasSubstr("'data' is missing"));
  EXPECT_THAT(error("{space: one_layer, data: {csv: table.csv, target: z}}"),
              testing::AllOf(HasSubstr("table.csv: column 'z' is unknown"), HasSubstr("a, b, y")));
  for (const std::string column : {"'3'", "'-1'", "'1x'", "'99999999999999999999'"})
    EXPECT_THAT(error("{space: one_layer, data: {csv: table.csv, target: " + column + "}}"),
                HasSubstr("table.csv: column " + column + " is unknown"));
  EXPECT_THAT(error("{space: one_layer, data: {csv: gone.csv, target: y}}"),
              HasSubstr("gone.csv does not exist"));
  EXPECT_THAT(error("{space: one_layer, data: {csv: table.csv, target: y}, loos: mse}"),
              HasSubstr("did you mean 'loss'"));
  EXPECT_THAT(error("{space: one_layer, data: {csv: table.csv, target: y, validation: 2}}"),
              HasSubstr("data/validation"));
  EXPECT_THAT(error("{space: one_layer, data: {csv: table.csv, target: [a, b, y]}}"),
              HasSubstr("none is left for inputs"));
  EXPECT_THAT(error("[1]"), HasSubstr("mine.yaml"));
}

}  // namespace
}  // namespace kolo::nas

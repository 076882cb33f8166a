// The spaces that come with kolo: their sizes, and random architectures built, run and trained.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <random>

#include "kolo/error.h"
#include "kolo/nas.h"

namespace kolo::nas {
namespace {

using testing::HasSubstr;
using Arch = std::vector<std::int64_t>;

Arch random_architecture(const KSearchSpace& space, std::mt19937& random) {
  Arch arch;
  for (const std::int64_t count : space.choices())
    arch.push_back(std::uniform_int_distribution<std::int64_t>(0, count - 1)(random));
  return arch;
}

TEST(Spaces, HaveTheSizesOfTheReference) {
  EXPECT_EQ(one_layer({{10}}, {{1}})->size(), 10);
  EXPECT_EQ(one_layer({{10}}, {{1}})->length(), 1U);
  EXPECT_EQ(simple_deep({{10}}, {{1}})->size(), std::pow(11, 10));
  EXPECT_EQ(simple_deep({{10}}, {{1}})->length(), 10U);
  const auto skip_co = dense_skip_co({{10}}, {{1}});
  EXPECT_EQ(skip_co->length(), 37U);
  EXPECT_NEAR(skip_co->size() / (std::pow(31.0, 10) * std::pow(2.0, 27)), 1, 1e-12);
  EXPECT_NEAR(skip_co->size(), 1.10e23, 0.005e23);
  EXPECT_EQ(dense_skip_co({{10}}, {{1}}, Value{{"num_layers", 3}})->size(), 1906624);
  const auto of_combo = combo({{942}, {3839}, {3839}}, {{1}});
  EXPECT_EQ(of_combo->length(), 18U);
  EXPECT_NEAR(of_combo->size() / (std::pow(391.0, 9) * std::pow(2.0, 9)), 1, 1e-12);
  EXPECT_EQ(nt3({{1, 60}}, {{2}})->length(), 12U);
  EXPECT_EQ(nt3({{60}}, {{2}})->size(), 635040000);
  EXPECT_EQ(candle_mlp({{5}, {7}}, {{1}})->size(), std::pow(13, 9));
  EXPECT_EQ(candle_mlp({{5}, {5}}, {{1}}, Value{{"share_equal_inputs", true}})->size(),
            std::pow(13, 6));
  EXPECT_EQ(candle_mlp({{5}}, {{1}}, Value{{"dropout_rates", Value::List{0.3}}})->size(),
            std::pow(11, 3));
  const auto cells = conv_cells({{1, 8, 8}}, {{10}});
  EXPECT_EQ(cells->length(), 23U);
  EXPECT_EQ(cells->size(), std::pow(11 * 2 * 4, 4) * std::pow(2, 6) * 4 * 3 * 2 * 3 * 3);
}

TEST(Spaces, DenseSkipCoHasItsLayersAndThenTheirSkips) {
  const auto space = dense_skip_co({{10}}, {{1}}, Value{{"num_layers", 4}});
  std::vector<std::string> names;
  for (const NodeId node : space->variable_nodes()) names.push_back(space->node(node).name);
  EXPECT_THAT(names, testing::ElementsAre("layer_1", "skip_1_1", "layer_2", "skip_2_1", "skip_2_2",
                                          "layer_3", "skip_3_1", "skip_3_2", "skip_3_3", "layer_4",
                                          "skip_4_1", "skip_4_2", "skip_4_3"));
  // The fourth layer's oldest anchor is the first merge: the input is too far away.
  EXPECT_EQ(space->node(space->find("skip_4_1")).operations[1],
            op::connect({space->find("merge_1")}));
  const auto& operations = space->node(space->find("layer_1")).operations;
  ASSERT_EQ(operations.size(), 31U);
  EXPECT_EQ(operations[0], op::identity());
  EXPECT_EQ(operations[1], op::dense(16));
  EXPECT_EQ(operations[30], op::dense(96, "sigmoid"));
}

TEST(Spaces, DenseSkipCoIsTheSumOfProjections) {
  const auto space = dense_skip_co({{5}}, {{2}}, Value{{"num_layers", 1}});
  const auto model = space->model(Arch{3, 1});  // Dense(16, relu), with the skip
  const auto x = torch::randn({3, 5});
  auto parameters = model->named_parameters();
  EXPECT_EQ(parameters.keys(),
            (std::vector<std::string>{"layer_1.weight", "layer_1.bias", "merge_1.weight_1",
                                      "merge_1.bias_1", "output_0.weight", "output_0.bias"}));
  const auto layer = torch::relu(torch::linear(x, parameters["layer_1.weight"]));
  const auto merged = torch::relu(layer + torch::linear(x, parameters["merge_1.weight_1"]));
  EXPECT_TRUE(torch::allclose(model->forward({x})[0],
                              torch::linear(merged, parameters["output_0.weight"]), 1e-4, 1e-5));
}

struct Case {
  const char* name;
  std::vector<Shape> inputs;
  Value settings;
  int architectures;
};

void PrintTo(const Case& tested, std::ostream* out) { *out << tested.name; }

class EverySpace : public testing::TestWithParam<Case> {};

TEST_P(EverySpace, RandomArchitecturesRunForwardAndBackward) {
  const auto& [name, inputs, settings, architectures] = GetParam();
  const auto space = space_function(name)(inputs, {{3}}, settings);
  std::mt19937 random(7);
  torch::manual_seed(7);
  std::vector<torch::Tensor> samples;
  for (const Shape& shape : inputs) {
    std::vector<std::int64_t> sizes{4};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    samples.push_back(torch::randn(sizes));
  }
  for (int i = 0; i < architectures; ++i) {
    const Arch arch = random_architecture(*space, random);
    SCOPED_TRACE(space->describe(arch));
    const auto model = space->model(arch);
    const auto output = model->forward(samples).at(0);
    ASSERT_EQ(output.sizes().vec(), (std::vector<std::int64_t>{4, 3}));
    output.square().sum().backward();
    for (const auto& item : model->named_parameters()) {
      ASSERT_TRUE(item.value().grad().defined()) << item.key();
      ASSERT_TRUE(torch::isfinite(item.value().grad()).all().item<bool>()) << item.key();
    }
    // Built again, the same names and shapes: a checkpoint fits.
    if (i % 16 == 0) {
      const auto again = space->model(arch);
      ASSERT_EQ(again->named_parameters().keys(), model->named_parameters().keys());
      ASSERT_EQ(again->num_parameters(), model->num_parameters());
    }
  }
}

TEST_P(EverySpace, AStepOfTrainingLowersTheLoss) {
  const auto& [name, inputs, settings, architectures] = GetParam();
  (void)architectures;
  const auto space = space_function(name)(inputs, {{3}}, settings);
  std::mt19937 random(11);
  torch::manual_seed(11);
  std::vector<torch::Tensor> samples;
  for (const Shape& shape : inputs) {
    std::vector<std::int64_t> sizes{16};
    sizes.insert(sizes.end(), shape.begin(), shape.end());
    samples.push_back(torch::randn(sizes));
  }
  const auto target = torch::randn({16, 3});
  for (int i = 0; i < 5; ++i) {
    const Arch arch = random_architecture(*space, random);
    SCOPED_TRACE(space->describe(arch));
    const auto model = space->model(arch);
    torch::optim::SGD optimizer(model->parameters(), 1e-3);
    const auto loss = [&] {
      torch::manual_seed(3);  // the same dropout before and after
      return torch::mse_loss(model->forward(samples).at(0), target);
    };
    const auto before = loss();
    before.backward();
    double slope = 0;
    for (const auto& parameter : model->parameters())
      slope += parameter.grad().square().sum().item<double>();
    ASSERT_GT(slope, 0);
    // A step along the gradient, short enough that the loss is as good as linear.
    for (auto& group : optimizer.param_groups())
      static_cast<torch::optim::SGDOptions&>(group.options())
          .lr(std::min(1e-2, 0.01 * before.item<double>() / slope));
    optimizer.step();
    EXPECT_LT(loss().item<double>(), before.item<double>());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EverySpace,
    testing::Values(Case{"one_layer", {{10}}, {}, 30}, Case{"simple_deep", {{10}}, {}, 200},
                    Case{"dense_skip_co", {{10}}, {}, 300},
                    Case{"dense_skip_co", {{4}, {2, 3}}, Value{{"num_layers", 3}}, 100},
                    Case{"conv_cells", {{1, 8, 8}}, {}, 60},
                    Case{"conv_cells", {{3, 28, 28}}, Value{{"num_cells", 3}}, 20},
                    Case{"candle_mlp", {{10}, {6}, {6}}, Value{{"share_equal_inputs", true}}, 20},
                    Case{"nt3", {{1, 60}}, {}, 60}, Case{"nt3", {{2}}, {}, 30},
                    Case{"combo", {{10}, {6}, {6}}, {}, 4}),
    [](const auto& info) { return std::string(info.param.name) + std::to_string(info.index); });

TEST(Spaces, AreListedAndFoundByName) {
  std::vector<std::string_view> names;
  for (const auto& info : spaces()) {
    names.push_back(info.name);
    EXPECT_FALSE(info.summary.empty());
  }
  EXPECT_THAT(names,
              testing::UnorderedElementsAre("one_layer", "simple_deep", "dense_skip_co",
                                            "conv_cells", "candle_mlp", "nt3", "combo", "graph"));
  try {
    (void)space_function("dense_skipco");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_THAT(error.what(), HasSubstr("dense_skip_co"));
  }
}

TEST(Spaces, RefuseSettingsAndShapesThatTheyDoNotKnow) {
  const auto failure = [](const char* name, std::vector<Shape> inputs, const Value& settings) {
    try {
      (void)space_function(name)(inputs, {{1}}, settings);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
      return std::string(error.what());
    }
    return std::string("nothing was thrown");
  };
  EXPECT_THAT(failure("dense_skip_co", {{4}}, Value{{"layers", 3}}),
              testing::AllOf(HasSubstr("'layers'"), HasSubstr("num_layers")));
  EXPECT_THAT(failure("dense_skip_co", {{4}}, Value{{"num_layer", 3}}),
              HasSubstr("setting 'num_layer' is unknown; did you mean 'num_layers'? known: "));
  EXPECT_THAT(failure("dense_skip_co", {{4}}, Value{{"num_layers", 0}}), HasSubstr("num_layers"));
  EXPECT_THAT(failure("simple_deep", {{4}}, Value{{"num_layers", "ten"}}), HasSubstr("ten"));
  EXPECT_THAT(failure("one_layer", {{4}}, Value("all")), HasSubstr("dictionary"));
  EXPECT_THAT(failure("one_layer", {{4}}, Value{{"regression", 1}}), HasSubstr("regression"));
  EXPECT_THAT(failure("conv_cells", {{64}}, {}), HasSubstr("(64)"));
  EXPECT_THAT(failure("conv_cells", {{1, 8, 8}}, Value{{"filters", Value::List{}}}),
              HasSubstr("filters"));
  EXPECT_THAT(failure("nt3", {{1, 2, 3}}, {}), HasSubstr("(1, 2, 3)"));
  EXPECT_THAT(failure("combo", {{4}, {5}, {6}}, {}), HasSubstr("(5) and (6)"));
  EXPECT_THAT(failure("candle_mlp", {{4}}, Value{{"dropout_rates", Value::List{1.5}}}),
              HasSubstr("dropout_rates"));
}

}  // namespace
}  // namespace kolo::nas

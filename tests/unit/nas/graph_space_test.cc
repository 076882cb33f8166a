// Graphs: order, choices, sharing, and everything that can be wrong with them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/torch.h>

#include "kolo/error.h"
#include "kolo/nas.h"

namespace kolo::nas {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Arch = std::vector<std::int64_t>;

/// The message of what `call` throws; the code must be `code`.
template <class Call>
std::string failure(Call call, ErrorCode code = ErrorCode::invalid_argument) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

void expect_all(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts) EXPECT_THAT(text, HasSubstr(part));
}

TEST(KSearchSpace, AnArchitectureHasOneNumberPerVariableNodeInGraphOrder) {
  KSearchSpace space({{4}}, {{2}});
  // Added from behind: the order is that of the graph.
  const NodeId last = space.add_variable("last", {op::dense(2), op::dense(2, "relu")});
  const NodeId middle = space.add_variable("middle", {op::identity(), op::dense(3), op::dense(5)});
  const NodeId first = space.add_variable("first", {op::dense(7), op::identity()});
  space.connect(space.input(), first);
  space.connect(first, middle);
  space.connect(middle, last);
  EXPECT_THAT(space.variable_nodes(), ElementsAre(first, middle, last));
  EXPECT_THAT(space.choices(), ElementsAre(2, 3, 2));
  EXPECT_EQ(space.length(), 3U);
  EXPECT_EQ(space.size(), 12);
  EXPECT_EQ(space.describe(Arch{0, 2, 1}),
            "first: Dense(units=7)\nmiddle: Dense(units=5)\n"
            "last: Dense(units=2, activation=relu)\n");
  EXPECT_EQ(space.model(Arch{0, 2, 0})->num_parameters(), 35 + 40 + 12);
  EXPECT_EQ(space.model(Arch{1, 0, 0})->num_parameters(), 10);
  EXPECT_EQ(space.find("middle"), middle);
}

TEST(KSearchSpace, NodesThatAreFreeAtOnceComeAsTheyWereAdded) {
  KSearchSpace space({{4}}, {{2}});
  const NodeId merge = space.add_constant("merge", op::add_by_projecting());
  const NodeId b = space.add_variable("b", {op::dense(2)});
  const NodeId a = space.add_variable("a", {op::dense(2)});
  for (const NodeId node : {a, b}) space.connect(space.input(), node);
  for (const NodeId node : {a, b}) space.connect(node, merge);
  EXPECT_THAT(space.variable_nodes(), ElementsAre(b, a));
}

TEST(KSearchSpace, FractionsBecomeIndices) {
  const auto space = one_layer({{4}}, {{1}});
  const auto index = [&](double f) { return space->from_fractions(std::vector<double>{f}).at(0); };
  EXPECT_EQ(index(0.0), 0);
  EXPECT_EQ(index(0.0999), 0);
  EXPECT_EQ(index(0.1), 1);
  EXPECT_EQ(index(0.75), 7);
  EXPECT_EQ(index(0.9999), 9);
  EXPECT_EQ(index(1.0), 9);
  expect_all(failure([&] { (void)index(1.5); }), {"1.5", "layer_1"});
  expect_all(failure([&] { (void)index(std::nan("")); }), {"layer_1"});
  EXPECT_THAT(failure([&] {
                (void)space->from_fractions(std::vector<double>{0.1, 0.2});
              }),
              HasSubstr("2 numbers for 1 variable node"));
  EXPECT_THAT(failure([&] { (void)space->from_fractions({}); }), HasSubstr("layer_1"));
}

TEST(KSearchSpace, EveryIndexIsReachedByAFractionAndBack) {
  const auto space = dense_skip_co({{8}}, {{1}}, Value{{"num_layers", 2}});
  const auto choices = space->choices();
  for (std::int64_t step = 0; step < 31; ++step) {
    Arch arch;
    std::vector<double> fractions;
    for (const std::int64_t count : choices) {
      arch.push_back(step % count);
      fractions.push_back((static_cast<double>(step % count) + 0.5) / static_cast<double>(count));
    }
    EXPECT_EQ(space->from_fractions(fractions), arch);
  }
}

/// Two inputs, each with a layer; the second is made by `add(first layer)`.
template <class Add>
std::unique_ptr<KSearchSpace> siamese(Add add, Shape second = {4}) {
  auto space = std::make_unique<KSearchSpace>(std::vector<Shape>{{4}, std::move(second)},
                                              std::vector<Shape>{{6}});
  const NodeId left = space->add_variable("left", {op::dense(3), op::dense(3, "relu")});
  const NodeId right = add(*space, left);
  const NodeId merge = space->add_constant("merge", op::concatenate());
  space->connect(space->input(0), left);
  space->connect(space->input(1), right);
  space->connect(left, merge);
  space->connect(right, merge);
  return space;
}

TEST(KSearchSpace, AMirrorNodeSharesWeights) {
  const auto space =
      siamese([](KSearchSpace& s, NodeId left) { return s.add_mirror("right", left); });
  EXPECT_THAT(space->choices(), ElementsAre(2));
  const auto model = space->model(Arch{1});
  EXPECT_EQ(model->num_parameters(), 15);
  EXPECT_EQ(model->named_parameters().keys(),
            (std::vector<std::string>{"left.weight", "left.bias"}));
  const auto x = torch::randn({5, 4});
  const auto both = model->forward({x, x})[0];
  EXPECT_TRUE(torch::equal(both.narrow(1, 0, 3), both.narrow(1, 3, 3)));
  // The same storage: what one side learns the other side knows.
  {
    torch::NoGradGuard no_grad;
    model->named_parameters()["left.bias"].fill_(1);
  }
  const auto shifted = model->forward({x, x})[0];
  EXPECT_TRUE(torch::equal(shifted.narrow(1, 0, 3), shifted.narrow(1, 3, 3)));
  EXPECT_FALSE(torch::equal(shifted, both));
}

TEST(KSearchSpace, AMimeNodeSharesTheChoiceOnly) {
  const auto space =
      siamese([](KSearchSpace& s, NodeId left) { return s.add_mime("right", left); });
  EXPECT_THAT(space->choices(), ElementsAre(2));
  const auto model = space->model(Arch{1});
  EXPECT_EQ(model->num_parameters(), 30);
  const auto parameters = model->named_parameters();
  EXPECT_NE(parameters["left.weight"].data_ptr(), parameters["right.weight"].data_ptr());
  const auto x = torch::randn({50, 4});
  const auto both = model->forward({x, x})[0];
  EXPECT_FALSE(torch::equal(both.narrow(1, 0, 3), both.narrow(1, 3, 3)));
  EXPECT_EQ(both.min().item<double>(), 0);  // relu on both sides
  EXPECT_LT(space->model(Arch{0})->forward({x, x})[0].narrow(1, 3, 3).min().item<double>(), 0);
}

TEST(KSearchSpace, AMimeNodeMayHaveOperationsOfItsOwn) {
  const auto space = siamese([](KSearchSpace& s, NodeId left) {
    return s.add_mime("right", left, {op::dense(3, "sigmoid"), op::identity()});
  });
  EXPECT_EQ(space->model(Arch{0})->num_parameters(), 30);
  EXPECT_THAT(failure([&] { (void)space->model(Arch{1}); }), HasSubstr("(7)"));
}

TEST(KSearchSpace, MirroringNeedsTheSameShape) {
  const auto space =
      siamese([](KSearchSpace& s, NodeId left) { return s.add_mirror("right", left); }, {5});
  expect_all(failure([&] { (void)space->model(Arch{0}); }),
             {"right", "left", "Dense(units=3)", "(4)", "(5)", "MimeNode"});
}

TEST(KSearchSpace, ConnectIsASkipConnection) {
  KSearchSpace space({{4}}, {{3}});
  const NodeId layer = space.add_constant("layer", op::dense(3));
  const NodeId skip = space.add_variable("skip", {op::zero(), op::connect({space.input()})});
  const NodeId sum = space.add_constant("sum", op::add_by_projecting());
  space.connect(space.input(), layer);
  space.connect(layer, sum);
  space.connect(skip, sum);
  EXPECT_EQ(space.model(Arch{0})->named_parameters().keys(),
            (std::vector<std::string>{"layer.weight", "layer.bias"}));
  const auto with = space.model(Arch{1});
  EXPECT_EQ(with->num_parameters(), 30);
  const auto x = torch::randn({2, 4});
  const auto parameters = with->named_parameters();
  EXPECT_TRUE(torch::allclose(
      with->forward({x})[0],
      torch::linear(x, parameters["layer.weight"] + parameters["sum.weight_1"]), 1e-4, 1e-5));
}

TEST(KSearchSpace, ConnectOfSeveralIsMergedByWhoComesNext) {
  KSearchSpace space({{4}, {2}}, {{6}});
  const NodeId skip =
      space.add_variable("skip", {op::identity(), op::connect({space.input(0), space.input(1)})});
  const NodeId merge = space.add_constant("merge", op::concatenate());
  space.connect(skip, merge);
  const auto a = torch::randn({2, 4}), b = torch::randn({2, 2});
  EXPECT_TRUE(torch::equal(space.model(Arch{1})->forward({a, b})[0], torch::cat({a, b}, 1)));
  expect_all(failure([&] { (void)space.model(Arch{0}); }), {"merge", "nothing reaches"});
}

TEST(KSearchSpace, LayersThatLeadToNoOutputAreLeftOut) {
  KSearchSpace space({{4}}, {{3}});
  const NodeId off = space.add_constant("sometimes", op::dense(50));
  const NodeId choice = space.add_variable("choice", {op::zero(), op::connect({off})});
  const NodeId layer = space.add_constant("always", op::dense(3));
  const NodeId sum = space.add_constant("sum", op::add_by_projecting());
  space.connect(space.input(), off);
  space.connect(space.input(), layer);
  space.connect(layer, sum);
  space.connect(choice, sum);
  EXPECT_EQ(space.model(Arch{0})->num_parameters(), 15);
  EXPECT_EQ(space.model(Arch{1})->num_parameters(), 15 + 250 + 153);
}

TEST(KSearchSpace, SeveralOutputs) {
  KSearchSpace space({{4}}, {{3}, {2, 2}});
  const NodeId layer = space.add_variable("layer", {op::dense(5, "relu")});
  space.connect(space.input(), layer);
  add_outputs(space);
  const auto outputs = space.model(Arch{0})->forward({torch::randn({7, 4})});
  ASSERT_EQ(outputs.size(), 2U);
  EXPECT_EQ(outputs[0].sizes().vec(), (std::vector<std::int64_t>{7, 3}));
  EXPECT_EQ(outputs[1].sizes().vec(), (std::vector<std::int64_t>{7, 2, 2}));
}

TEST(KSearchSpace, AddOutputsMergesWhatLeadsNowhere) {
  KSearchSpace space({{2, 4, 4}, {3}}, {{1}});
  const NodeId image = space.add_constant("image", op::conv2d(2, 3));
  const NodeId table = space.add_constant("table", op::dense(6));
  space.connect(space.input(0), image);
  space.connect(space.input(1), table);
  add_outputs(space);
  const auto model = space.model({});
  EXPECT_EQ(model->named_parameters()["output_0.weight"].sizes().vec(),
            (std::vector<std::int64_t>{1, 2 * 16 + 6}));
}

TEST(KSearchSpace, TheModelChecksItsInputs) {
  const auto model = one_layer({{4}}, {{1}})->model(Arch{3});
  EXPECT_THAT(failure([&] { (void)model->forward({}); }), HasSubstr("0 tensors for 1 inputs"));
  expect_all(failure([&] { (void)model->forward({torch::randn({2, 5})}); }), {"(2, 5)", "(4)"});
  EXPECT_THAT(failure([&] { (void)model->forward({torch::randn({4})}); }), HasSubstr("(4)"));
}

// ---- what can be wrong

TEST(KSearchSpaceErrors, ACycleNamesItsNodes) {
  KSearchSpace space({{4}}, {{4}});
  const NodeId a = space.add_constant("a", op::add_by_padding());
  const NodeId b = space.add_constant("b", op::dense(4));
  const NodeId c = space.add_constant("c", op::dense(4));
  const NodeId end = space.add_constant("end", op::identity());
  space.connect(space.input(), a);
  space.connect(a, b);
  space.connect(b, c);
  space.connect(c, a);
  space.connect(c, end);
  const std::string text = failure([&] { space.check(); });
  EXPECT_THAT(text, HasSubstr("cycle"));
  EXPECT_TRUE(text.find("a -> b -> c -> a") != std::string::npos ||
              text.find("b -> c -> a -> b") != std::string::npos ||
              text.find("c -> a -> b -> c") != std::string::npos)
      << text;
  EXPECT_EQ(text.find("end"), std::string::npos);
  EXPECT_THAT(failure([&] { (void)space.size(); }), HasSubstr("cycle"));
}

TEST(KSearchSpaceErrors, ACycleThroughConnectAndOneOfASingleNode) {
  KSearchSpace space({{4}}, {{4}});
  const NodeId a = space.add_constant("a", op::add_by_padding());
  const NodeId skip = space.add_variable("skip", {op::zero(), op::connect({a})});
  space.connect(space.input(), a);
  space.connect(skip, a);
  EXPECT_THAT(failure([&] { space.check(); }), HasSubstr("skip"));
  KSearchSpace self({{4}}, {{4}});
  const NodeId loop = self.add_constant("loop", op::add_by_padding());
  self.connect(self.input(), loop);
  self.connect(loop, loop);
  EXPECT_THAT(failure([&] { self.check(); }), HasSubstr("loop -> loop"));
}

TEST(KSearchSpaceErrors, ArchitecturesOfWrongLengthOrRange) {
  const auto space = simple_deep({{4}}, {{1}}, Value{{"num_layers", 3}});
  expect_all(failure([&] { (void)space->model(Arch{1, 2}); }), {"2 numbers", "3", "layer_3"});
  EXPECT_THAT(failure([&] { (void)space->model(Arch{1, 2, 3, 4}); }), HasSubstr("4 numbers"));
  expect_all(failure([&] {
               (void)space->model(Arch{1, 11, 3});
             }),
             {"arch_seq[1]", "11", "layer_2", "0…10"});
  EXPECT_THAT(failure([&] { (void)space->model(Arch{-1, 0, 0}); }), HasSubstr("layer_1"));
}

TEST(KSearchSpaceErrors, NamesAndConnectionsAreThereOnce) {
  KSearchSpace space({{4}}, {{1}});
  const NodeId a = space.add_constant("a", op::dense(1));
  EXPECT_THAT(failure([&] { space.add_constant("a", op::dense(1)); }, ErrorCode::already_exists),
              HasSubstr("'a'"));
  EXPECT_THAT(failure([&] { space.add_constant("a.b", op::dense(1)); }), HasSubstr("dot"));
  space.connect(space.input(), a);
  expect_all(failure([&] { space.connect(space.input(), a); }, ErrorCode::already_exists),
             {"input_0", "'a'"});
  EXPECT_THAT(failure([&] { space.connect(a, space.input()); }), HasSubstr("input_0"));
  EXPECT_THAT(failure([&] { space.connect(a, NodeId{77}); }), HasSubstr("77"));
  EXPECT_THAT(failure([&] { space.connect(NodeId{-1}, a); }), HasSubstr("-1"));
  EXPECT_THAT(failure([&] { (void)space.input(1); }), HasSubstr("1"));
  EXPECT_THAT(failure([&] { (void)space.find("b"); }, ErrorCode::not_found), HasSubstr("input_0"));
  EXPECT_EQ(space.node(space.add_constant("", op::dense(1))).name, "constant_2");
}

TEST(KSearchSpaceErrors, NodesOutOfReach) {
  KSearchSpace space({{4}}, {{1}});
  const NodeId a = space.add_constant("a", op::dense(1));
  const NodeId lost = space.add_constant("lost", op::dense(1));
  const NodeId sum = space.add_constant("sum", op::add_by_padding());
  space.connect(space.input(), a);
  space.connect(a, sum);
  space.connect(lost, sum);
  expect_all(failure([&] { space.check(); }), {"no input reaches lost", "connect something"});

  KSearchSpace two({{4}, {5}}, {{1}});
  two.connect(two.input(0), two.add_constant("a", op::dense(1)));
  EXPECT_THAT(failure([&] { two.check(); }), HasSubstr("input_1 leads to no output"));
}

TEST(KSearchSpaceErrors, OutputsThatDoNotFit) {
  KSearchSpace space({{4}}, {{1}});
  const NodeId a = space.add_constant("a", op::dense(1));
  const NodeId b = space.add_constant("b", op::dense(2));
  space.connect(space.input(), a);
  space.connect(space.input(), b);
  expect_all(failure([&] { space.check(); }), {"1 output shape", "2 output nodes", "a, b"});

  KSearchSpace wrong({{4}}, {{1}});
  wrong.connect(wrong.input(), wrong.add_variable("layer", {op::dense(1), op::dense(2)}));
  EXPECT_NO_THROW((void)wrong.model(Arch{0}));
  expect_all(failure([&] { (void)wrong.model(Arch{1}); }),
             {"'layer'", "Dense(units=2)", "(2)", "(1)"});

  KSearchSpace empty({{4}}, {{1}});
  EXPECT_THAT(failure([&] { empty.check(); }), HasSubstr("none"));
  EXPECT_THAT(failure([&] { add_outputs(empty); }, ErrorCode::failed_precondition),
              HasSubstr("add nodes first"));
}

TEST(KSearchSpaceErrors, SeveralTensorsMustBeMerged) {
  KSearchSpace space({{4}, {5}}, {{1}});
  const NodeId layer = space.add_constant("layer", op::dense(1));
  space.connect(space.input(0), layer);
  space.connect(space.input(1), layer);
  expect_all(failure([&] { (void)space.model({}); }),
             {"'layer'", "Dense(units=1)", "2 tensors", "(4), (5)", "Concatenate"});
}

std::string failure_of(const Operation& operation, std::vector<Shape> inputs) {
  KSearchSpace space(inputs, {{1}});
  const NodeId node = space.add_constant("node", operation);
  for (std::size_t i = 0; i < inputs.size(); ++i) space.connect(space.input(i), node);
  return failure([&] { (void)space.model({}); });
}

TEST(KSearchSpaceErrors, ShapesThatCannotMeetNameNodeOperationAndShapes) {
  expect_all(failure_of(op::conv2d(3, 3), {{10}}),
             {"'node'", "Conv2D(filters=3, kernel_size=3)", "(10)", "(channels, height, width)"});
  expect_all(failure_of(op::conv1d(3, 3), {{1, 8, 8}}), {"(1, 8, 8)", "(channels, length)"});
  expect_all(failure_of(op::max_pooling2d(9), {{1, 8, 8}}),
             {"MaxPooling2D", "(9, 9)", "(1, 8, 8)"});
  expect_all(failure_of(op::lstm(3), {{4}}), {"LSTM", "(4)", "(time, features)"});
  expect_all(failure_of(op::embedding(3, 2), {{4, 2}}), {"Embedding", "(4, 2)"});
  expect_all(failure_of(op::global_average_pooling(), {{4}}), {"(4)"});
  expect_all(failure_of(op::reshape({3, 2}), {{4}}), {"(3, 2)", "(4)"});
  expect_all(failure_of(op::add_by_projecting(), {{1, 8, 8}, {5}}), {"(1, 8, 8)", "(5)"});
  expect_all(failure_of(op::add_by_projecting(), {{3, 8}, {4, 8}}), {"(3, 8)", "(4, 8)"});
  expect_all(failure_of(Operation("Concatenate", Value{{"axis", 3}}), {{3, 8}}), {"axis 3"});
  expect_all(failure_of(Operation("Conv2D", Value{{"filters", 1}, {"kernel_size", Value::List{1}}}),
                        {{1, 8, 8}}),
             {"kernel_size", "1 numbers for 2 dimensions"});
}

TEST(KSearchSpaceErrors, ArgumentsAreCheckedWhenANodeIsAdded) {
  KSearchSpace space({{4}}, {{1}});
  const auto adding = [&](Operation operation, ErrorCode code = ErrorCode::invalid_argument) {
    return failure([&] { space.add_constant("n", operation); }, code);
  };
  expect_all(adding(Operation("Dens", Value{{"units", 3}}), ErrorCode::not_found),
             {"'n'", "'Dens'", "Dense", "Conv2D"});
  expect_all(adding(Operation("Dense")), {"'n'", "Dense", "units is missing"});
  expect_all(adding(Operation("Dense", Value{{"units", 3}, {"unitz", 3}})), {"unitz", "units"});
  expect_all(adding(op::dense(0)), {"units", "from 1", "0"});
  expect_all(adding(Operation("Dense", Value{{"units", 2.5}})), {"units", "2.5"});
  expect_all(adding(Operation("Dense", Value{{"units", "many"}})), {"units", "many"});
  expect_all(adding(op::dense(3, "rely"), ErrorCode::not_found), {"rely", "relu"});
  expect_all(adding(op::dropout(1.0)), {"rate", "below 1"});
  expect_all(adding(op::conv2d(3, 3, "relu", 1, "some")), {"padding", "same", "valid"});
  expect_all(adding(Operation("LSTM", Value{{"units", 1}, {"return_sequences", 1}})),
             {"return_sequences", "true or false"});
  expect_all(adding(Operation("Flatten", Value{{"axis", 1}})), {"Flatten", "no arguments"});
  expect_all(adding(op::reshape({})), {"shape"});
  expect_all(adding(op::connect({NodeId{50}})), {"Connect", "50"});
  expect_all(adding(op::connect({})), {"sources"});
  EXPECT_THAT(failure([&] { space.add_variable("n", {}); }), HasSubstr("'n'"));
  EXPECT_THAT(failure([&] { space.add_mirror("n", space.input()); }), HasSubstr("input_0"));
  const NodeId fixed = space.add_constant("fixed", op::dense(1));
  EXPECT_THAT(failure([&] { space.add_mime("n", fixed); }), HasSubstr("VariableNode"));
  const NodeId choice = space.add_variable("choice", {op::dense(1), op::dense(2)});
  EXPECT_THAT(failure([&] { space.add_mime("n", choice, {op::dense(1)}); }), HasSubstr("has 2"));
}

TEST(KSearchSpaceErrors, ShapesOfInputsAndOutputs) {
  EXPECT_THAT(failure([] { KSearchSpace({}, {{1}}); }), HasSubstr("no input shape"));
  EXPECT_THAT(failure([] { KSearchSpace({{1}}, {}); }), HasSubstr("no output shape"));
  EXPECT_THAT(failure([] { KSearchSpace({{0, 3}}, {{1}}); }), HasSubstr("(0, 3)"));
  EXPECT_THAT(failure([] { KSearchSpace({{}}, {{1}}); }), HasSubstr("()"));
}

}  // namespace
}  // namespace kolo::nas

// Every operation, as a model of one node, against libtorch computed here.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kolo/error.h"
#include "kolo/nas.h"

namespace kolo::nas {
namespace {

namespace F = torch::nn::functional;

/// A model that only does `operation`; the shape of its output must be `output`.
std::shared_ptr<Model> only(const Operation& operation, std::vector<Shape> inputs, Shape output) {
  KSearchSpace space(inputs, {std::move(output)});
  const NodeId node = space.add_constant("node", operation);
  for (std::size_t i = 0; i < inputs.size(); ++i) space.connect(space.input(i), node);
  return space.model({});
}

/// Runs it on random samples and checks the shape that was inferred.
torch::Tensor run(const std::shared_ptr<Model>& model, const std::vector<torch::Tensor>& inputs) {
  torch::Tensor output = model->forward(inputs).at(0);
  std::vector<std::int64_t> sizes = model->output_shapes()[0];
  sizes.insert(sizes.begin(), inputs[0].size(0));
  EXPECT_EQ(output.sizes().vec(), sizes);
  return output;
}

torch::Tensor parameter(const std::shared_ptr<Model>& model, const std::string& name) {
  return model->named_parameters()["node." + name];
}

#define EXPECT_CLOSE(left, right)                                          \
  do {                                                                     \
    const torch::Tensor l = (left), r = (right);                           \
    ASSERT_EQ(l.sizes(), r.sizes());                                       \
    EXPECT_TRUE(torch::allclose(l, r, 1e-4, 1e-5)) << (l - r).abs().max(); \
  } while (false)

TEST(Operations, DenseIsALinearMapAndAnActivation) {
  const auto model = only(op::dense(3, "tanh"), {{5}}, {3});
  const auto x = torch::randn({4, 5});
  const auto weight = parameter(model, "weight");
  EXPECT_EQ(weight.sizes().vec(), (std::vector<std::int64_t>{3, 5}));
  EXPECT_CLOSE(run(model, {x}), torch::tanh(torch::matmul(x, weight.t())));
  EXPECT_EQ(model->num_parameters(), 18);
  EXPECT_EQ(only(Operation("Dense", Value{{"units", 3}, {"use_bias", false}}), {{5}}, {3})
                ->num_parameters(),
            15);
  // Over the last axis where there are several.
  const auto sequence = torch::randn({4, 7, 5});
  const auto over_time = only(op::dense(3), {{7, 5}}, {7, 3});
  EXPECT_CLOSE(run(over_time, {sequence}),
               torch::matmul(sequence, parameter(over_time, "weight").t()));
}

TEST(Operations, EveryActivationIsTheOneOfItsName) {
  const auto x = torch::randn({6, 9});
  const std::map<std::string_view, torch::Tensor> expected = {
      {"none", x},
      {"relu", torch::clamp_min(x, 0)},
      {"tanh", 2 / (1 + torch::exp(-2 * x)) - 1},
      {"sigmoid", 1 / (1 + torch::exp(-x))},
      {"swish", x / (1 + torch::exp(-x))},
      {"elu", torch::where(x > 0, x, torch::exp(x) - 1)},
      {"selu",
       1.0507009873554805 * torch::where(x > 0, x, 1.6732632423543772 * (torch::exp(x) - 1))},
      {"softmax", torch::exp(x) / torch::exp(x).sum(1, true)},
      {"gelu", x * 0.5 * (1 + torch::erf(x / std::sqrt(2.0)))},
  };
  ASSERT_EQ(activations().size(), expected.size());
  for (const std::string_view name : activations())
    EXPECT_CLOSE(run(only(op::activation(name), {{9}}, {9}), {x}), expected.at(name));
  const auto image = torch::randn({2, 3, 4, 4});
  EXPECT_CLOSE(run(only(op::activation("softmax"), {{3, 4, 4}}, {3, 4, 4}), {image}),
               torch::softmax(image, 1));
}

TEST(Operations, ConvolutionsPadAsKerasDoes) {
  for (const std::int64_t length : {7, 8, 9})
    for (const std::int64_t kernel : {1, 2, 3, 4, 5})
      for (const std::int64_t stride : {1, 2, 3}) {
        const std::int64_t places = (length + stride - 1) / stride;
        const std::int64_t zeros =
            std::max<std::int64_t>((places - 1) * stride + kernel - length, 0);
        const auto signal = torch::randn({2, 3, length});
        const auto same = only(op::conv1d(4, kernel, "none", stride), {{3, length}}, {4, places});
        EXPECT_CLOSE(
            run(same, {signal}),
            torch::conv1d(F::pad(signal, F::PadFuncOptions({zeros / 2, zeros - zeros / 2})),
                          parameter(same, "weight"), parameter(same, "bias"), stride));
        const std::int64_t inside = (length - kernel) / stride + 1;
        const auto valid =
            only(op::conv1d(4, kernel, "relu", stride, "valid"), {{3, length}}, {4, inside});
        EXPECT_CLOSE(run(valid, {signal}),
                     torch::relu(torch::conv1d(signal, parameter(valid, "weight"), {}, stride)));
      }
}

TEST(Operations, ConvolutionsOfImages) {
  const auto image = torch::randn({2, 3, 8, 6});
  const auto conv = only(op::conv2d(5, 3), {{3, 8, 6}}, {5, 8, 6});
  EXPECT_CLOSE(run(conv, {image}),
               torch::conv2d(image, parameter(conv, "weight"), parameter(conv, "bias"), 1, 1));
  EXPECT_EQ(conv->num_parameters(), 5 * 3 * 9 + 5);
  const auto oblong = only(Operation("Conv2D", Value{{"filters", 2},
                                                     {"kernel_size", Value::List{3, 2}},
                                                     {"strides", Value::List{2, 1}},
                                                     {"padding", "valid"}}),
                           {{3, 8, 6}}, {2, 3, 5});
  EXPECT_CLOSE(run(oblong, {image}), torch::conv2d(image, parameter(oblong, "weight"), {}, {2, 1}));
  const auto separable = only(op::separable_conv2d(5, 3, "relu", 2), {{3, 8, 6}}, {5, 4, 3});
  // 8 and 6 are even: one zero each, at the end.
  const auto padded = F::pad(image, F::PadFuncOptions({0, 1, 0, 1}));
  std::vector<torch::Tensor> channels;
  for (std::int64_t c = 0; c < 3; ++c)
    channels.push_back(torch::conv2d(
        padded.narrow(1, c, 1), parameter(separable, "depthwise_weight").narrow(0, c, 1), {}, 2));
  EXPECT_CLOSE(run(separable, {image}),
               torch::relu(torch::conv2d(torch::cat(channels, 1),
                                         parameter(separable, "pointwise_weight"))));
  EXPECT_EQ(separable->num_parameters(), 3 * 9 + 3 * 5 + 5);
}

/// The mean or the largest of each window, place by place.
torch::Tensor pooled(const torch::Tensor& signal, std::int64_t size, std::int64_t stride, bool same,
                     bool mean) {
  const std::int64_t length = signal.size(2);
  const std::int64_t places = same ? (length + stride - 1) / stride : (length - size) / stride + 1;
  const std::int64_t zeros =
      same ? std::max<std::int64_t>((places - 1) * stride + size - length, 0) : 0;
  std::vector<torch::Tensor> columns;
  for (std::int64_t place = 0; place < places; ++place) {
    const std::int64_t begin = std::max<std::int64_t>(place * stride - zeros / 2, 0);
    const std::int64_t end = std::min(place * stride - zeros / 2 + size, length);
    const auto window = signal.narrow(2, begin, end - begin);
    columns.push_back(mean ? window.mean(2) : window.amax(2));
  }
  return torch::stack(columns, 2);
}

TEST(Operations, PoolsDoNotCountPaddedPlaces) {
  for (const std::int64_t length : {5, 6, 7})
    for (const std::int64_t size : {2, 3, 4})
      for (const std::int64_t stride : {1, 2, 3})
        for (const bool same : {false, true}) {
          const auto signal = torch::randn({2, 3, length}) - 3;  // zeros would be the largest
          const char* padding = same ? "same" : "valid";
          const auto largest = pooled(signal, size, stride, same, false);
          const Shape shape{3, largest.size(2)};
          EXPECT_CLOSE(
              run(only(op::max_pooling1d(size, stride, padding), {{3, length}}, shape), {signal}),
              largest);
          EXPECT_CLOSE(run(only(op::average_pooling1d(size, stride, padding), {{3, length}}, shape),
                           {signal}),
                       pooled(signal, size, stride, same, true));
          // An image of which every row is the signal, pooled along its width alone.
          const auto image = signal.unsqueeze(2).expand({2, 3, 4, length});
          const Value arguments{{"pool_size", Value::List{1, size}},
                                {"strides", Value::List{1, stride}},
                                {"padding", padding}};
          const Shape image_shape{3, 4, largest.size(2)};
          const auto expanded = [&](const torch::Tensor& row) {
            return row.unsqueeze(2).expand({2, 3, 4, row.size(2)});
          };
          EXPECT_CLOSE(
              run(only(Operation("MaxPooling2D", arguments), {{3, 4, length}}, image_shape),
                  {image}),
              expanded(largest));
          EXPECT_CLOSE(
              run(only(Operation("AveragePooling2D", arguments), {{3, 4, length}}, image_shape),
                  {image}),
              expanded(pooled(signal, size, stride, same, true)));
        }
  // Strides are those of the pool where none are given.
  (void)run(only(op::max_pooling2d(2), {{3, 8, 8}}, {3, 4, 4}), {torch::randn({1, 3, 8, 8})});
  const auto image = torch::randn({2, 3, 4, 5});
  EXPECT_CLOSE(run(only(op::global_average_pooling(), {{3, 4, 5}}, {3}), {image}),
               image.mean({2, 3}));
}

TEST(Operations, BatchNormalizationUsesTheBatchInTrainingAndWhatItSawAfterwards) {
  const auto model = only(op::batch_normalization(), {{3, 4, 4}}, {3, 4, 4});
  const auto x = torch::randn({8, 3, 4, 4}) * 3 + 2;
  const auto normal = run(model, {x});
  EXPECT_CLOSE(normal.mean({0, 2, 3}), torch::zeros({3}));
  EXPECT_NEAR(normal.var(false).item<double>(), 1, 1e-2);
  for (int i = 0; i < 100; ++i) (void)run(model, {x});
  model->eval();
  EXPECT_TRUE(torch::allclose(run(model, {x}), normal, 1e-2, 1e-2));
  // A batch of one value per channel leaves what it knows as it is.
  const auto features = only(op::batch_normalization(), {{3}}, {3});
  EXPECT_TRUE(torch::isfinite(run(features, {torch::randn({1, 3})})).all().item<bool>());
  for (const auto& buffer : features->buffers())
    EXPECT_TRUE(torch::isfinite(buffer).all().item<bool>());
}

TEST(Operations, DropoutActsInTrainingOnly) {
  const auto model = only(op::dropout(0.25), {{1000}}, {1000});
  const auto x = torch::ones({10, 1000});
  const auto dropped = run(model, {x});
  const double zeros = (dropped == 0).to(torch::kFloat64).mean().item<double>();
  EXPECT_NEAR(zeros, 0.25, 0.03);
  EXPECT_NEAR(dropped.max().item<double>(), 1 / 0.75, 1e-6);
  model->eval();
  EXPECT_CLOSE(run(model, {x}), x);
}

TEST(Operations, ShapesAndConstants) {
  const auto image = torch::randn({2, 3, 4, 5});
  EXPECT_CLOSE(run(only(op::flatten(), {{3, 4, 5}}, {60}), {image}), image.flatten(1));
  EXPECT_CLOSE(run(only(op::reshape({5, 12}), {{3, 4, 5}}, {5, 12}), {image}),
               image.reshape({2, 5, 12}));
  EXPECT_CLOSE(run(only(op::identity(), {{3, 4, 5}}, {3, 4, 5}), {image}), image);

  KSearchSpace space({{4}}, {{6}});
  const NodeId constant = space.add_constant(
      "constant",
      Operation("Tensor", Value{{"shape", Value::List{2}}, {"value", Value::List{3, 5}}}));
  const NodeId joined = space.add_constant("joined", op::concatenate());
  space.connect(space.input(), joined);
  space.connect(constant, joined);
  const auto x = torch::randn({3, 4});
  EXPECT_CLOSE(space.model({})->forward({x})[0],
               torch::cat({x, torch::tensor({3.F, 5.F}).expand({3, 2})}, 1));
}

TEST(Operations, LstmIsLibtorchsWithOneBias) {
  torch::nn::LSTM reference(torch::nn::LSTMOptions(3, 4).batch_first(true));
  for (const bool all_steps : {false, true}) {
    const auto model = only(op::lstm(4, all_steps), {{6, 3}}, all_steps ? Shape{6, 4} : Shape{4});
    {
      torch::NoGradGuard no_grad;
      auto parameters = reference->named_parameters();
      parameters["weight_ih_l0"].copy_(parameter(model, "weight_ih"));
      parameters["weight_hh_l0"].copy_(parameter(model, "weight_hh"));
      parameters["bias_ih_l0"].copy_(parameter(model, "bias"));
      parameters["bias_hh_l0"].zero_();
    }
    const auto x = torch::randn({5, 6, 3});
    const auto steps = std::get<0>(reference->forward(x));
    EXPECT_CLOSE(run(model, {x}), all_steps ? steps : steps.select(1, 5));
    EXPECT_EQ(model->num_parameters(), 4 * (3 * 4 + 4 * 4 + 4));  // as Keras counts
    const auto recurrent = parameter(model, "weight_hh");
    EXPECT_CLOSE(torch::matmul(recurrent.t(), recurrent), torch::eye(4));
    EXPECT_CLOSE(parameter(model, "bias"),
                 torch::cat({torch::zeros({4}), torch::ones({4}), torch::zeros({8})}));
  }
}

TEST(Operations, EmbeddingLooksUpRows) {
  const auto model = only(op::embedding(10, 4), {{3}}, {3, 4});
  const auto words = torch::randint(0, 10, {5, 3}, torch::kFloat32);
  EXPECT_CLOSE(run(model, {words}), parameter(model, "weight")
                                        .index_select(0, words.flatten().to(torch::kLong))
                                        .reshape({5, 3, 4}));
}

TEST(Operations, ConcatenatePadsTheSmallerOnesWithZeros) {
  const auto a = torch::randn({2, 3}), b = torch::randn({2, 5});
  EXPECT_CLOSE(run(only(op::concatenate(), {{3}, {5}}, {8}), {a, b}), torch::cat({a, b}, 1));
  const auto small = torch::randn({2, 3, 4, 4}), large = torch::randn({2, 2, 6, 5});
  const auto joined =
      run(only(op::concatenate(), {{3, 4, 4}, {2, 6, 5}}, {5, 6, 5}), {small, large});
  EXPECT_CLOSE(joined.narrow(1, 3, 2), large);
  EXPECT_CLOSE(joined.narrow(1, 0, 3).narrow(2, 0, 4).narrow(3, 0, 4), small);
  EXPECT_NEAR(joined.abs().sum().item<double>(),
              (small.abs().sum() + large.abs().sum()).item<double>(), 1e-3);
  // Fewer dimensions: features count as channels.
  const auto mixed =
      run(only(op::concatenate(), {{3}, {2, 2, 2}}, {5, 2, 2}), {a, torch::randn({2, 2, 2, 2})});
  EXPECT_CLOSE(mixed.narrow(1, 0, 3).select(3, 0).select(2, 0), a);
  EXPECT_CLOSE(run(only(Operation("Concatenate", Value{{"flatten", true}}), {{3}, {2, 2, 2}}, {11}),
                   {a, torch::ones({2, 2, 2, 2})}),
               torch::cat({a, torch::ones({2, 8})}, 1));
}

TEST(Operations, AddByPadding) {
  const auto a = torch::randn({2, 3}), b = torch::randn({2, 5});
  const auto sum = run(only(op::add_by_padding("relu"), {{3}, {5}}, {5}), {a, b});
  EXPECT_CLOSE(sum, torch::relu(b + torch::cat({a, torch::zeros({2, 2})}, 1)));
}

TEST(Operations, AddByProjectingBringsTheOthersToTheShapeOfTheFirst) {
  const auto a = torch::randn({2, 3}), b = torch::randn({2, 5}), c = torch::randn({2, 3});
  const auto model = only(op::add_by_projecting("relu"), {{3}, {5}, {3}}, {3});
  EXPECT_CLOSE(run(model, {a, b, c}),
               torch::relu(a + torch::linear(b, parameter(model, "weight_1")) + c));
  EXPECT_EQ(model->num_parameters(), 5 * 3 + 3);
  const auto wide = only(op::add_by_projecting("none", 7), {{3}, {5}}, {7});
  EXPECT_CLOSE(run(wide, {a, b}), torch::linear(a, parameter(wide, "weight_0")) +
                                      torch::linear(b, parameter(wide, "weight_1")));
  // Images: channels by a 1x1 convolution, places by their mean.
  const auto image = torch::randn({2, 3, 4, 4}), large = torch::randn({2, 5, 8, 8});
  const auto images = only(op::add_by_projecting(), {{3, 4, 4}, {5, 8, 8}}, {3, 4, 4});
  EXPECT_CLOSE(run(images, {image, large}),
               image + torch::conv2d(torch::avg_pool2d(large, 2), parameter(images, "weight_1")));
  const auto flat = only(op::add_by_projecting(), {{3}, {2, 2, 2}}, {3});
  const auto cube = torch::randn({2, 2, 2, 2});
  EXPECT_CLOSE(run(flat, {a, cube}),
               a + torch::linear(cube.flatten(1), parameter(flat, "weight_1")));
}

TEST(Operations, WeightsBeginAsInKeras) {
  torch::manual_seed(1);
  const auto dense = only(op::dense(200), {{100}}, {200});
  const double limit = std::sqrt(6.0 / 300);
  const auto weight = parameter(dense, "weight");
  EXPECT_LE(weight.abs().max().item<double>(), limit);
  EXPECT_GT(weight.abs().max().item<double>(), 0.99 * limit);
  EXPECT_NEAR(weight.std().item<double>(), limit / std::sqrt(3.0), 1e-3);
  EXPECT_EQ(parameter(dense, "bias").abs().max().item<double>(), 0);
  const auto conv = only(op::conv2d(32, 3), {{16, 8, 8}}, {32, 8, 8});
  const double conv_limit = std::sqrt(6.0 / (9 * (16 + 32)));
  EXPECT_LE(parameter(conv, "weight").abs().max().item<double>(), conv_limit);
  EXPECT_GT(parameter(conv, "weight").abs().max().item<double>(), 0.99 * conv_limit);
  // The caller's seed decides.
  torch::manual_seed(1);
  EXPECT_TRUE(torch::equal(parameter(only(op::dense(200), {{100}}, {200}), "weight"), weight));
}

TEST(Operations, AreDataThatCanBeReadAndCompared) {
  EXPECT_EQ(op::dense(16, "relu").to_string(), "Dense(units=16, activation=relu)");
  EXPECT_EQ(op::dense(16, "relu").label(), "Dense 16 relu");
  EXPECT_EQ(op::max_pooling2d(3, 1, "same").to_string(),
            "MaxPooling2D(pool_size=3, strides=1, padding=same)");
  EXPECT_EQ(op::dense(16), Operation("Dense", Value{{"units", 16}}));
  EXPECT_FALSE(op::dense(16) == op::dense(17));
  EXPECT_EQ(operations().size(), 23U);
  for (const auto& info : operations()) EXPECT_FALSE(info.summary.empty()) << info.name;
}

// ---- an operation of the user's

class ScaleLayer : public Layer {
 public:
  ScaleLayer(std::int64_t features, double by) {
    scale_ = register_parameter("scale", torch::full({features}, by));
  }
  torch::Tensor forward(const Inputs& inputs) override { return inputs[0] * scale_; }

 private:
  torch::Tensor scale_;
};

constexpr Argument kScaleArguments[] = {{"by", ArgumentType::number, true}};
const OperationKind kScale{
    Arity::one, kScaleArguments,
    [](const Arguments&, std::span<const Shape> inputs) { return inputs[0]; },
    [](const Arguments& arguments, std::span<const Shape> inputs) -> std::shared_ptr<Layer> {
      return std::make_shared<ScaleLayer>(inputs[0].back(), arguments.number("by", 1));
    }};

TEST(Operations, UsersMayAddTheirOwn) {
  const Operation scale("Scale", Value{{"by", 2.5}}, &kScale);
  EXPECT_EQ(scale.to_string(), "Scale(by=2.5)");
  const auto model = only(scale, {{3}}, {3});
  const auto x = torch::randn({4, 3});
  EXPECT_CLOSE(run(model, {x}), 2.5 * x);
  EXPECT_EQ(model->named_parameters().keys(), std::vector<std::string>{"node.scale"});
  EXPECT_THROW(Operation("Scale", Value(Value::Dict{}), &kScale).check(), Error);
}

}  // namespace
}  // namespace kolo::nas

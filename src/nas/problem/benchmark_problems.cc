// The regression problems draw 100,000 points of a test function with a fixed seed and learn the
// function from them; the image problems use the digits and Fashion-MNIST. Sizes, epochs and
// settings are those of DeepHyper's benchmarks where it has them.
#include "nas/problem/benchmark_problems.h"

#include <cctype>
#include <span>

#include "hps/problem/functions.h"
#include "kolo/random.h"
#include "kolo/torch/data.h"

namespace kolo::nas {
namespace {

using torch::Tensor;

constexpr std::int64_t kDimensions = 10;
constexpr std::int64_t kSamples = 100'000;
constexpr std::uint64_t kSeed = 2018;
constexpr double kValidationShare = 0.2;

using Function = double (*)(std::span<const double>);

/// Points drawn uniformly in a box, and a function's values there.
struct Points {
  Tensor x, y;  ///< samples x kDimensions, samples x 1
};

Points sample(Function function, double low, double high, std::int64_t samples) {
  Random random(kSeed);
  Points points{torch::empty({samples, kDimensions}), torch::empty({samples, 1})};
  auto x = points.x.accessor<float, 2>();
  auto y = points.y.accessor<float, 2>();
  std::vector<double> point(kDimensions);
  for (std::int64_t i = 0; i < samples; ++i) {
    for (std::int64_t d = 0; d < kDimensions; ++d) {
      // In (low, high]: the reference's domain of sums is open below.
      point[static_cast<std::size_t>(d)] = high - (high - low) * random.uniform();
      x[i][d] = static_cast<float>(point[static_cast<std::size_t>(d)]);
    }
    y[i][0] = static_cast<float>(function(point));
  }
  return points;
}

DataSplit split(Samples all) {
  const std::int64_t size = all.size();
  const auto validation = static_cast<std::int64_t>(kValidationShare * static_cast<double>(size));
  DataSplit parts;
  const auto cut = [&](const std::vector<Tensor>& from, std::vector<Tensor>& train,
                       std::vector<Tensor>& rest) {
    for (const Tensor& tensor : from) {
      train.push_back(tensor.narrow(0, 0, size - validation));
      rest.push_back(tensor.narrow(0, size - validation, validation));
    }
  };
  cut(all.inputs, parts.train.inputs, parts.validation.inputs);
  cut(all.targets, parts.train.targets, parts.validation.targets);
  return parts;
}

NaProblem regression(std::int64_t epochs) {
  NaProblem problem;
  problem.hyperparameters(
      {{"batch_size", 100}, {"learning_rate", 0.1}, {"optimizer", "adam"}, {"num_epochs", epochs}});
  problem.loss("mse").metrics({"r2"}).objective("val_r2").seed(kSeed);
  return problem;
}

/// Searches maximise, and the reference learns what they maximise: the negative of the function.
template <Function function>
double negative(std::span<const double> x) {
  return -function(x);
}

constexpr double kLinearLow = 1, kLinearHigh = 100;
Points linear_points(std::int64_t samples = kSamples) {
  return sample(hps::functions::linear, kLinearLow, kLinearHigh, samples);
}

NaProblem linear_reg() {
  NaProblem problem = regression(1);
  problem
      .load_data([] {
        const Points points = linear_points();
        return split({{points.x}, {points.y}});
      })
      .preprocessing("none")
      .search_space("one_layer");
  return problem;
}

NaProblem linear_reg_multivar() {
  NaProblem problem = linear_reg();
  problem.load_data([] {
    const Points points = linear_points();
    return split({{points.x}, {torch::cat({points.y, -points.y}, 1)}});
  });
  return problem;
}

NaProblem linear_reg_multi_inputs() {
  NaProblem problem = linear_reg();
  problem.load_data([] {
    constexpr std::int64_t kFew = 100;
    const Points points = linear_points(kFew);
    return split({points.x.split(kDimensions / 2, 1), {points.y}});
  });
  return problem;
}

/// An autoencoder beside the regression: the first output is the input again, and weighs nothing
/// against the second.
NaProblem linear_reg_multi_loss() {
  NaProblem problem = linear_reg();
  problem
      .load_data([] {
        const Points points = linear_points();
        return split({{points.x}, {points.x, points.y}});
      })
      .loss({{"output_0", "mse"}, {"output_1", "mse"}}, {{"output_0", 0.1}, {"output_1", 0.9}})
      .output_metrics({{"output_0", {"r2"}}, {"output_1", {"r2"}}})
      .objective("val_output_1_r2");
  return problem;
}

template <Function function>
NaProblem function_reg(double low, double high) {
  constexpr std::int64_t kEpochs = 10;
  NaProblem problem = regression(kEpochs);
  problem
      .load_data([low, high] {
        const Points points = sample(negative<function>, low, high, kSamples);
        return split({{points.x}, {points.y}});
      })
      .preprocessing("minmaxstdscaler")
      .search_space("one_layer");
  return problem;
}

NaProblem polynome2_reg() {
  NaProblem problem = function_reg<hps::functions::polynome2>(-10, 10);
  problem.search_space("dense_skip_co", {{"num_layers", 3}});
  return problem;
}
NaProblem ackley_reg() { return function_reg<hps::functions::ackley>(-32.768, 32.768); }
NaProblem levy_reg() { return function_reg<hps::functions::levy>(-10, 10); }
NaProblem dixonprice_reg() { return function_reg<hps::functions::dixon_price>(-50, 50); }
NaProblem saddle_reg() { return function_reg<hps::functions::saddle>(-50, 50); }

// --- images ---

/// The training part only: what is for testing stays unseen by a search.
NaProblem images(Dataset (*load)(), std::int64_t channels, std::int64_t side) {
  NaProblem problem;
  problem.load_data([=] {
    const Dataset data = load();
    return split({{data.inputs.reshape({-1, channels, side, side})}, {data.targets}});
  });
  problem.loss("cross_entropy").metrics({"acc"}).objective("val_acc").seed(kSeed);
  return problem;
}

Dataset training_digits() { return load_digits(Split::train); }
Dataset training_fashion() { return load_fashion_mnist(Split::train); }

NaProblem digits() {
  NaProblem problem = images(training_digits, 1, 8);
  problem.search_space("conv_cells")
      .hyperparameters(
          {{"batch_size", 32}, {"learning_rate", 0.01}, {"optimizer", "adam"}, {"num_epochs", 5}});
  return problem;
}

NaProblem digits_dense() {
  NaProblem problem = digits();
  problem
      .load_data([] {
        const Dataset data = training_digits();
        return split({{data.inputs}, {data.targets}});
      })
      .search_space("dense_skip_co", {{"num_layers", 3}});
  return problem;
}

NaProblem fashion() {
  NaProblem problem = images(training_fashion, 1, 28);
  problem.search_space("conv_cells")
      .hyperparameters({{"batch_size", 128},
                        {"learning_rate", 0.001},
                        {"optimizer", "adam"},
                        {"num_epochs", 2}});
  return problem;
}

constexpr Entry<MakeProblem> kProblemTable[] = {
    {"linear_reg", "the sum of ten numbers; one layer", linear_reg},
    {"linear_reg_multivar", "the sum and its negative, as one output of two", linear_reg_multivar},
    {"linear_reg_multi_inputs", "the sum of two inputs of five; 100 samples",
     linear_reg_multi_inputs},
    {"linear_reg_multi_loss", "two outputs with weighted losses: the input again, and its sum",
     linear_reg_multi_loss},
    {"polynome2_reg", "a sum of squares; three dense layers with skip connections", polynome2_reg},
    {"ackley_reg", "Ackley's function; one layer", ackley_reg},
    {"levy_reg", "Levy's function; one layer", levy_reg},
    {"dixonprice_reg", "Dixon and Price's function; one layer", dixonprice_reg},
    {"saddle_reg", "a saddle; one layer", saddle_reg},
    {"digits", "1,438 handwritten digits of 8 x 8 pixels; convolutional cells", digits},
    {"digits_dense", "the same digits; three dense layers with skip connections", digits_dense},
    {"fashion", "60,000 images of clothes, 28 x 28 pixels; convolutional cells", fashion},
};

constexpr Entry<std::string_view> kReferenceNames[] = {
    {"linearRegMultiInputsGen", "", "linear_reg_multi_inputs"},
    {"linearRegMultiVar", "", "linear_reg_multivar"},
};

std::string snake_case(std::string_view camel) {
  std::string snake;
  for (const char c : camel) {
    if (std::isupper(static_cast<unsigned char>(c)) != 0) {
      if (!snake.empty()) snake += '_';
      snake += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      snake += c;
    }
  }
  return snake;
}

}  // namespace

constinit const Registry<MakeProblem> kBenchmarkProblems{"architecture problem", kProblemTable};

std::string benchmark_name(std::string_view name) {
  for (const std::string_view prefix : {"deephyper.", "benchmark.", "nas."})
    if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  for (const std::string_view suffix : {".Problem", ".problem"})
    if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  for (const auto& entry : kReferenceNames)
    if (entry.name == name) return std::string(entry.make);
  return snake_case(name);
}

}  // namespace kolo::nas

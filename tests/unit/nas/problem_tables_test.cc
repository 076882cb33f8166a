// Losses, metrics, preprocessings and optimizers against numbers worked out by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nas/problem/hyperparameters.h"
#include "nas/problem/losses.h"
#include "nas/problem/metrics.h"
#include "nas/problem/optimizers.h"
#include "nas/problem/preprocessing.h"
#include "nas/run/flat_parameters.h"
#include "unit/nas/small_problem.h"

namespace kolo::nas {
namespace {

using test::error_of;
using testing::HasSubstr;
using torch::Tensor;

double loss(const char* name, const Tensor& outputs, const Tensor& targets,
            const std::vector<double>& weights = {}) {
  return make_loss(name, weights)(outputs, targets).item<double>();
}

TEST(Losses, HaveTheirDefinitions) {
  const Tensor outputs = torch::tensor({{1.0F}, {4.0F}}), targets = torch::tensor({{2.0F}, {2.0F}});
  EXPECT_NEAR(loss("mse", outputs, targets), 2.5, 1e-6);
  EXPECT_NEAR(loss("mean_absolute_error", outputs, targets), 1.5, 1e-6);
  EXPECT_NEAR(loss("huber_loss", outputs, targets), (0.5 + 1.5) / 2, 1e-6);
  EXPECT_NEAR(loss("log_cosh", outputs, targets),
              (std::log(std::cosh(1.0)) + std::log(std::cosh(2.0))) / 2, 1e-6);
  EXPECT_NEAR(loss("mape", outputs, targets), 75, 1e-4);
  EXPECT_NEAR(loss("msle", outputs, targets),
              (std::pow(std::log(2.0 / 3), 2) + std::pow(std::log(5.0 / 3), 2)) / 2, 1e-6);
  EXPECT_NEAR(loss("log_cosh", torch::tensor({{1000.0F}}), torch::tensor({{0.0F}})),
              1000 - std::log(2.0), 1e-3)
      << "must not overflow";
}

TEST(Losses, CrossEntropyTakesScoresAndWeighsSamples) {
  const Tensor scores = torch::tensor({{2.0F, 0.0F}, {0.0F, 1.0F}});
  const Tensor classes = torch::tensor({0, 0}, torch::kInt64);
  const double first = std::log(1 + std::exp(-2.0)), second = std::log(1 + std::exp(1.0));
  EXPECT_NEAR(loss("categorical_crossentropy", scores, classes), (first + second) / 2, 1e-6);
  const Tensor mixed = torch::tensor({0, 1}, torch::kInt64);
  const double third = std::log(1 + std::exp(-1.0));
  // Keras divides by the number of samples, libtorch by the sum of the weights.
  EXPECT_NEAR(loss("cross_entropy", scores, mixed, {1.0, 3.0}), (first + 3 * third) / 2, 1e-6);
  const Tensor one_hot = torch::tensor({{1.0F, 0.0F}, {0.0F, 1.0F}});
  EXPECT_NEAR(loss("cross_entropy", scores, one_hot, {1.0, 3.0}), (first + 3 * third) / 2, 1e-6);
  EXPECT_NEAR(loss("binary_crossentropy", torch::tensor({{2.0F}}), torch::tensor({{1.0F}})), first,
              1e-6);
  EXPECT_NEAR(loss("binary_crossentropy", torch::tensor({{2.0F}}), torch::tensor({{1.0F}}), {1, 5}),
              5 * first, 1e-5);
  EXPECT_THAT(error_of([&] { (void)make_loss("mse", {1, 2}); }), HasSubstr("class weights"));
  EXPECT_THAT(error_of([&] { (void)make_loss("mean_sqared_error", {}); }),
              testing::AllOf(HasSubstr("mse"), HasSubstr("cross_entropy")));
}

double metric(const char* name, const Tensor& outputs, const Tensor& targets) {
  const Metric made = make_metric(name);
  return made.value(made.sums(outputs, targets));
}

TEST(Metrics, AreExactOverBatches) {
  torch::manual_seed(3);
  const Tensor targets = torch::randn({100, 3}) * torch::tensor({1.0F, 10.0F, 0.1F}) + 5;
  const Tensor outputs = targets + 0.3 * torch::randn({100, 3});
  const Tensor y = targets.to(torch::kFloat64), p = outputs.to(torch::kFloat64);
  const Tensor by_hand = 1 - (y - p).square().sum(0) / (y - y.mean(0)).square().sum(0);
  EXPECT_NEAR(metric("r2", outputs, targets), by_hand.mean().item<double>(), 1e-9);
  for (const char* name : {"r2", "mse", "rmse", "mae"}) {
    const Metric made = make_metric(name);
    const Tensor sums = made.sums(outputs.narrow(0, 0, 37), targets.narrow(0, 0, 37)) +
                        made.sums(outputs.narrow(0, 37, 63), targets.narrow(0, 37, 63));
    EXPECT_NEAR(made.value(sums), metric(name, outputs, targets), 1e-9) << name;
  }
  EXPECT_NEAR(metric("rmse", outputs, targets), std::sqrt((y - p).square().mean().item<double>()),
              1e-9);
  const Tensor same = torch::full({5, 1}, 0.1F);
  EXPECT_EQ(metric("r2", same, same), 1);
  EXPECT_EQ(metric("r2", same + 1, same), 0);
}

TEST(Metrics, CountHits) {
  const Tensor scores = torch::tensor({{2.0F, 0.0F}, {0.0F, 1.0F}, {3.0F, 1.0F}});
  EXPECT_NEAR(metric("accuracy", scores, torch::tensor({0, 0, 0}, torch::kInt64)), 2.0 / 3, 1e-12);
  const Tensor one_hot = torch::tensor({{1.0F, 0.0F}, {0.0F, 1.0F}, {0.0F, 1.0F}});
  EXPECT_NEAR(metric("acc", scores, one_hot), 2.0 / 3, 1e-12);
  EXPECT_NEAR(
      metric("binary_accuracy", torch::tensor({{1.0F}, {-1.0F}}), torch::tensor({{1.0F}, {1.0F}})),
      0.5, 1e-12);
}

TEST(Metrics, AreasUnderCurves) {
  // Separated perfectly; and not at all.
  const Tensor truths = torch::tensor({{0.0F}, {0.0F}, {1.0F}, {1.0F}});
  const Tensor good = torch::tensor({{-3.0F}, {-2.0F}, {2.0F}, {3.0F}});
  EXPECT_NEAR(metric("aucpr", good, truths), 1, 1e-9);
  EXPECT_NEAR(metric("auc", good, truths), 1, 1e-9);
  EXPECT_NEAR(metric("auc", -good, truths), 0, 1e-9);
  // One pair of four in the wrong order: 3 of 4 pairs are right.
  const Tensor fair = torch::tensor({{-3.0F}, {1.0F}, {0.0F}, {3.0F}});
  EXPECT_NEAR(metric("auc_roc", fair, truths), 0.75, 1e-9);
  // Random scores: precision is the share of positives.
  torch::manual_seed(1);
  const Tensor many = (torch::rand({20000, 1}) < 0.3).to(torch::kFloat32);
  EXPECT_NEAR(metric("auc_pr", torch::randn({20000, 1}), many), 0.3, 0.02);
}

TEST(Preprocessing, LearnsFromTheTrainingPartOnly) {
  DataSplit data;
  data.train = {{torch::tensor({{0.0F, 5.0F}, {4.0F, 5.0F}})}, {torch::tensor({{10.0F}, {30.0F}})}};
  data.validation = {{torch::tensor({{8.0F, 6.0F}})}, {torch::tensor({{20.0F}})}};
  const DataSplit minmax = kPreprocessings.at("minmaxscaler").make(data);
  EXPECT_TRUE(torch::equal(minmax.train.inputs[0], torch::tensor({{0.0F, 0.0F}, {1.0F, 0.0F}})));
  EXPECT_TRUE(torch::equal(minmax.validation.inputs[0], torch::tensor({{2.0F, 1.0F}})));
  EXPECT_TRUE(torch::equal(minmax.validation.targets[0], torch::tensor({{0.5F}})));
  const DataSplit both = kPreprocessings.at("minmaxstdscaler").make(data);
  EXPECT_TRUE(torch::equal(both.train.inputs[0], torch::tensor({{-1.0F, 0.0F}, {1.0F, 0.0F}})));
  EXPECT_TRUE(torch::equal(both.validation.inputs[0], torch::tensor({{3.0F, 1.0F}})));
  EXPECT_TRUE(torch::equal(both.train.targets[0], torch::tensor({{-1.0F}, {1.0F}})));
  data.train.targets = data.validation.targets = {torch::tensor({0, 1}, torch::kInt64)};
  EXPECT_TRUE(torch::equal(kPreprocessings.at("stdscaler").make(data).train.targets[0],
                           data.train.targets[0]))
      << "classes stay";
}

torch::nn::Sequential small_net() {
  torch::manual_seed(1);
  return torch::nn::Sequential(torch::nn::Linear(3, 4), torch::nn::Tanh(), torch::nn::Linear(4, 2));
}

TEST(FlatParameters, StepAsSeparateOnesDo) {
  for (const auto& entry : kOptimizers.entries()) {
    torch::nn::Sequential flat_net = small_net(), plain_net = small_net();
    FlatParameters flat(*flat_net);
    const OptimizerSettings settings{.rate = 0.01, .momentum = 0.5, .weight_decay = 0.1};
    FlatOptimizer flat_steps(flat, entry.make, settings);
    const auto plain_steps = entry.make.make(plain_net->parameters(), settings);
    torch::manual_seed(2);
    for (int step = 0; step < 5; ++step) {
      const Tensor x = torch::randn({8, 3});
      flat.clear_gradients();
      flat_net->forward(x).square().mean().backward();
      flat_steps.step();
      plain_steps->zero_grad();
      plain_net->forward(x).square().mean().backward();
      plain_steps->step();
    }
    const auto ours = flat_net->parameters(), theirs = plain_net->parameters();
    for (std::size_t i = 0; i < ours.size(); ++i)
      EXPECT_TRUE(torch::equal(ours[i], theirs[i])) << entry.name << ", parameter " << i;
  }
}

TEST(Hyperparameters, AreReadAndChecked) {
  const auto settings = TrainingSettings::from(
      Value{{"batch_size", 64.0},
            {"optimizer", "sgd"},
            {"patience_EarlyStopping", 7},
            {"callbacks", Value{{"EarlyStopping", Value{{"patience", 3}, {"monitor", "val_r2"}}},
                                {"TimeStopping", Value{{"seconds", 1.5}}}}}});
  EXPECT_EQ(settings.batch_size, 64);
  EXPECT_EQ(settings.early_stopping->patience, 7) << "a single value goes before callbacks";
  EXPECT_EQ(settings.early_stopping->monitor, "val_r2");
  EXPECT_EQ(settings.time_limit_seconds, 1.5);
  EXPECT_FALSE(settings.reduce_on_plateau.has_value());
  const auto error = [](Value values) {
    return error_of([&] { (void)TrainingSettings::from(values); });
  };
  EXPECT_THAT(error({{"batch_sise", 3}}), HasSubstr("batch_size"));
  EXPECT_THAT(error({{"batch_size", 2.5}}), HasSubstr("'batch_size' is 2.5"));
  EXPECT_THAT(error({{"batch_size", 0}}), HasSubstr("from 1"));
  EXPECT_THAT(error({{"learning_rate", -1}}), HasSubstr("learning_rate"));
  EXPECT_THAT(error({{"optimizer", "nadam"}}),
              testing::AllOf(HasSubstr("adamw"), HasSubstr("rmsprop"), HasSubstr("adagrad")));
  EXPECT_THAT(error({{"callbacks", Value{{"EarlyStoping", Value{}}}}}), HasSubstr("EarlyStopping"));
  EXPECT_THAT(error({{"lsr_batch_size", 1}}), HasSubstr("true or false"));
}

}  // namespace
}  // namespace kolo::nas

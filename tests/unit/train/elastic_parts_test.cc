#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "kolo/error.h"
#include "kolo/torch/elastic.h"
#include "kolo/torch/lamb.h"
#include "kolo/torch/lars.h"
#include "train/elastic/updates.h"

namespace kolo::elastic {
namespace {

using Parameters = std::vector<torch::Tensor>;
using Make = std::function<std::unique_ptr<torch::optim::Optimizer>(Parameters)>;

struct Case {
  const char* name;
  Make make;
};

template <class Optimizer, class Options>
Case one(const char* name, Options options) {
  return {name, [options](Parameters parameters) {
            return std::make_unique<Optimizer>(std::move(parameters), options);
          }};
}

class OptimizerPart : public testing::TestWithParam<Case> {
 protected:
  OptimizerPart() { torch::manual_seed(3); }

  void train(int steps) {
    for (int step = 0; step < steps; ++step) {
      optimizer->zero_grad();
      net->forward(torch::ones({4, 5}) * (step + 1)).square().sum().backward();
      optimizer->step();
    }
  }
  /// What two steps make of the network as it is now.
  torch::Tensor two_steps_later() {
    train(2);
    return torch::cat({net->weight.detach().flatten(), net->bias.detach()}).clone();
  }

  torch::nn::Linear net{5, 3};
  std::unique_ptr<torch::optim::Optimizer> optimizer = GetParam().make(net->parameters());
  std::unique_ptr<Part> of_net = part_of(*net), of_optimizer = part_of(*optimizer);
};

TEST_P(OptimizerPart, GoesOnFromWhereItWasSaved) {
  for (int saved_after : {0, 3, 1}) {  // before there is any state, then twice into the same memory
    train(saved_after);
    of_net->save();
    of_optimizer->save();
    const torch::Tensor expected = two_steps_later();
    of_net->restore();
    of_optimizer->restore();
    EXPECT_TRUE(torch::equal(two_steps_later(), expected)) << "saved after " << saved_after;
  }
}

TEST_P(OptimizerPart, NeedsNoCopyWhereNothingChangedAfterTheMark) {
  train(3);
  of_net->mark();
  of_optimizer->mark();
  optimizer->zero_grad();
  net->forward(torch::ones({4, 5})).square().sum().backward();  // and then a rank is lost
  of_net->restore();
  of_optimizer->restore();
  const torch::Tensor weights = net->weight.detach().clone();
  of_net->save();
  of_optimizer->save();
  const torch::Tensor expected = two_steps_later();
  of_net->restore();
  of_optimizer->restore();
  EXPECT_TRUE(torch::equal(net->weight, weights));
  EXPECT_TRUE(torch::equal(two_steps_later(), expected));
}

TEST_P(OptimizerPart, SaysSoWhereParametersChangedAfterTheMark) {
  train(3);
  of_net->mark();
  ++train::parameter_updates();  // as DistributedOptimizer counts
  train(1);
  try {
    of_net->restore();
    FAIL() << "changed parameters were taken for the marked ones";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::failed_precondition) << error.message();
  }
}

TEST(ModulePart, BuffersAreCopiedWithEveryMark) {
  torch::nn::BatchNorm1d norm(2);
  const auto part = part_of(*norm);
  part->mark();
  const torch::Tensor before = norm->running_mean.clone();
  norm->forward(torch::randn({8, 2}) + 5);
  EXPECT_FALSE(torch::equal(norm->running_mean, before));
  part->restore();
  EXPECT_TRUE(torch::equal(norm->running_mean, before));
}

TEST_P(OptimizerPart, GoesOnFromBytes) {
  train(2);
  const std::string net_bytes = of_net->bytes(), optimizer_bytes = of_optimizer->bytes();
  const torch::Tensor expected = two_steps_later();
  of_net->load(net_bytes);
  of_optimizer->load(optimizer_bytes);
  EXPECT_TRUE(torch::equal(two_steps_later(), expected));
}

INSTANTIATE_TEST_SUITE_P(
    All, OptimizerPart,
    testing::Values(one<torch::optim::SGD>("sgd", torch::optim::SGDOptions(0.01).momentum(0.9)),
                    one<torch::optim::Adam>("adam", torch::optim::AdamOptions(0.01).amsgrad(true)),
                    one<torch::optim::AdamW>("adamw", torch::optim::AdamWOptions(0.01)),
                    one<torch::optim::RMSprop>(
                        "rmsprop", torch::optim::RMSpropOptions(0.01).momentum(0.5).centered(true)),
                    one<torch::optim::Adagrad>("adagrad", torch::optim::AdagradOptions(0.01)),
                    one<Lars>("lars", LarsOptions(0.01)), one<Lamb>("lamb", LambOptions(0.01))),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kolo::elastic

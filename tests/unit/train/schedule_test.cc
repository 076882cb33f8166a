#include "kolo/torch/schedule.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

#include "kolo/error.h"
#include "kolo/torch/lars.h"
#include "kolo/torch/noise_scale.h"
#include "kolo/torch/rate_scheduler.h"

namespace kolo {
namespace {

TEST(LinearScaling, ScalesRateAndBatchEachIfAsked) {
  const RateAndBatch one{.rate = 0.1, .batch = 32};
  auto both = scale_linearly(one, 4);
  EXPECT_DOUBLE_EQ(both.rate, 0.4);
  EXPECT_EQ(both.global_batch, 128U);
  EXPECT_EQ(both.batch_per_rank, 32U);
  auto batch_only = scale_linearly(one, 4, {.rate = false, .batch = true});
  EXPECT_DOUBLE_EQ(batch_only.rate, 0.1);
  EXPECT_EQ(batch_only.global_batch, 128U);
  auto rate_only = scale_linearly(one, 4, {.rate = true, .batch = false});
  EXPECT_DOUBLE_EQ(rate_only.rate, 0.4);
  EXPECT_EQ(rate_only.batch_per_rank, 8U);
  auto accumulated = scale_linearly(one, 2, {}, 3);
  EXPECT_DOUBLE_EQ(accumulated.rate, 0.6);
  EXPECT_EQ(accumulated.global_batch, 192U);
  EXPECT_EQ(accumulated.batch_per_rank, 32U);
  EXPECT_THROW((void)scale_linearly(one, 5, {.rate = true, .batch = false}), Error);
  EXPECT_THROW((void)scale_linearly(one, 0), Error);
}

TEST(Schedules, FollowTheirFormulae) {
  auto steps = schedule::multi_step(1.0, {60, 30, 80}, 0.1);
  EXPECT_DOUBLE_EQ(steps(29.99), 1.0);
  EXPECT_DOUBLE_EQ(steps(30), 0.1);
  EXPECT_NEAR(steps(80), 1e-3, 1e-15);
  auto poly = schedule::polynomial(2.0, 10, 2.0, 0.5);
  EXPECT_DOUBLE_EQ(poly(0), 2.0);
  EXPECT_DOUBLE_EQ(poly(5), 0.5 + 1.5 * 0.25);
  EXPECT_DOUBLE_EQ(poly(12), 0.5);
  auto cosine = schedule::cosine(2.0, 10, 0.2);
  EXPECT_DOUBLE_EQ(cosine(0), 2.0);
  EXPECT_NEAR(cosine(5), 1.1, 1e-12);
  EXPECT_NEAR(cosine(10), 0.2, 1e-12);
  EXPECT_NEAR(cosine(99), 0.2, 1e-12);
  EXPECT_NEAR(schedule::exponential(1.0, 0.5)(2.5), std::pow(0.5, 2.5), 1e-15);
  EXPECT_DOUBLE_EQ(schedule::staircase(schedule::exponential(1.0, 0.5))(2.9), 0.25);
  EXPECT_THROW((void)schedule::constant(-1), Error);
  EXPECT_THROW((void)schedule::cosine(1, -1), Error);
  EXPECT_THROW((void)schedule::constant(std::nan("")), Error);
}

TEST(Schedules, WarmUpEndsAtTheScaledRate) {
  const auto scaled = scale_linearly({.rate = 0.1, .batch = 32}, 8);
  auto rate =
      schedule::warmup({.start = 0.1, .epochs = 5}, schedule::multi_step(scaled.rate, {30, 60}));
  EXPECT_DOUBLE_EQ(rate(0), 0.1);
  EXPECT_DOUBLE_EQ(rate(2.5), 0.45);
  EXPECT_DOUBLE_EQ(rate(5), 0.8);
  EXPECT_DOUBLE_EQ(rate(31), 0.08);
  auto shifted = schedule::warmup({.start = 0, .epochs = 5}, schedule::cosine(1.0, 10), true);
  EXPECT_DOUBLE_EQ(shifted(5), 1.0);
  EXPECT_NEAR(shifted(10), 0.5, 1e-12);
  auto none = schedule::warmup({.start = 0, .epochs = 0}, schedule::constant(1.0));
  EXPECT_DOUBLE_EQ(none(0), 1.0);
}

TEST(Schedules, HorovodsWarmUpIsOneCase) {
  constexpr int kRanks = 4, kSteps = 10;
  constexpr double kPeak = 0.4, kEpochs = 5;
  auto rate = schedule::horovod_warmup(kPeak, kRanks, kEpochs, schedule::constant(kPeak));
  auto own =
      schedule::warmup({.start = kPeak / kRanks, .epochs = kEpochs}, schedule::constant(kPeak));
  for (int epoch = 0; epoch < 7; ++epoch)
    for (int batch = 0; batch < kSteps; ++batch) {
      const double e = epoch + (batch + 1.0) / kSteps;
      const double expected =
          e < kEpochs ? kPeak / kRanks * (e * (kRanks - 1) / kEpochs + 1) : kPeak;
      EXPECT_DOUBLE_EQ(rate(e), expected);
      EXPECT_NEAR(own(e), expected, 1e-15);
    }
}

TEST(RateScheduler, SetsRatesOfAllGroupsAndCorrectsMomentum) {
  auto a = torch::ones({2}, torch::requires_grad()), b = torch::ones({2}, torch::requires_grad());
  std::vector<torch::optim::OptimizerParamGroup> groups;
  groups.emplace_back(std::vector<torch::Tensor>{a});
  groups.emplace_back(
      std::vector<torch::Tensor>{b},
      std::make_unique<torch::optim::SGDOptions>(torch::optim::SGDOptions(0.01).momentum(0.5)));
  torch::optim::SGD optimizer(groups, torch::optim::SGDOptions(0.1).momentum(0.9));
  RateScheduler scheduler(optimizer, schedule::multi_step(0.4, {1}, 0.5), {.steps_per_epoch = 2});
  auto options = [&](std::size_t g) -> torch::optim::SGDOptions& {
    return static_cast<torch::optim::SGDOptions&>(optimizer.param_groups()[g].options());
  };
  scheduler.step();
  EXPECT_DOUBLE_EQ(options(0).lr(), 0.4);
  EXPECT_DOUBLE_EQ(options(1).lr(), 0.04);
  EXPECT_DOUBLE_EQ(options(0).momentum(), 0.9);
  scheduler.step();
  scheduler.step();  // the rate halves here, and momentum with it, for this step
  EXPECT_DOUBLE_EQ(options(0).lr(), 0.2);
  EXPECT_DOUBLE_EQ(options(0).momentum(), 0.45);
  EXPECT_DOUBLE_EQ(options(1).momentum(), 0.25);
  const std::string state = scheduler.state();
  scheduler.step();
  EXPECT_DOUBLE_EQ(options(0).momentum(), 0.9);
  EXPECT_EQ(scheduler.steps(), 4U);

  RateScheduler resumed(optimizer, schedule::multi_step(0.4, {1}, 0.5), {.steps_per_epoch = 2});
  resumed.load_state(state);
  resumed.step();
  EXPECT_DOUBLE_EQ(options(0).momentum(), 0.9);
  EXPECT_DOUBLE_EQ(resumed.rate(), 0.2);
  EXPECT_EQ(resumed.steps(), 4U);
}

TEST(RateScheduler, CanCountFromOneAsHorovodDoes) {
  auto a = torch::ones({2}, torch::requires_grad());
  Lars optimizer({a}, LarsOptions(0.1));
  RateScheduler scheduler(optimizer, [](double epoch) { return epoch; },
                          {.steps_per_epoch = 4, .count_from_one = true});
  scheduler.step();
  EXPECT_DOUBLE_EQ(scheduler.rate(), 0.25);
  EXPECT_THROW(RateScheduler(optimizer, schedule::constant(1), {.steps_per_epoch = 0}), Error);
}

TEST(BatchSizes, GrowByEpoch) {
  const BatchGrowth growth{
      .first = 32, .factor = 3, .milestones = {2, 4}, .most = 200, .multiple_of = 4};
  EXPECT_EQ(batch_at(growth, 1.9), 32U);
  EXPECT_EQ(batch_at(growth, 2), 96U);
  EXPECT_EQ(batch_at(growth, 4), 200U);
}

TEST(BatchSizes, FollowTheNoise) {
  const BatchFollowsNoise rule{.least = 32, .most = 1000, .fastest = 2, .multiple_of = 8};
  EXPECT_EQ(next_batch(rule, 32, 50), 48U);   // rounded to a multiple of 8
  EXPECT_EQ(next_batch(rule, 32, 500), 64U);  // not faster than twice
  EXPECT_EQ(next_batch(rule, 64, 10), 64U);   // never smaller
  EXPECT_EQ(next_batch(rule, 800, 5000), 1000U);
  EXPECT_EQ(next_batch(rule, 64, std::nan("")), 64U);
}

TEST(NoiseScale, RecoversAKnownOne) {
  // Gradients of one sample: mean g, independent noise of variance s in each of d components.
  constexpr int kDimensions = 50, kSmall = 4, kRanks = 8;
  constexpr double kSigma = 2.0;
  torch::manual_seed(3);
  torch::Tensor g = torch::full({kDimensions}, 0.3, torch::kFloat64);
  NoiseScaleEstimate estimate(2000);
  for (int step = 0; step < 4000; ++step) {
    torch::Tensor ranks =
        g + torch::randn({kRanks, kDimensions}, torch::kFloat64) * (kSigma / std::sqrt(kSmall));
    const double small = ranks.square().sum(1).mean().item<double>();
    const double big = ranks.mean(0).square().sum().item<double>();
    estimate.add(kSmall, kSmall * kRanks, small, big);
  }
  const double variance = kDimensions * kSigma * kSigma, squared = kDimensions * 0.09;
  EXPECT_NEAR(estimate.variance(), variance, 0.02 * variance);
  EXPECT_NEAR(estimate.squared_gradient(), squared, 0.1 * squared);
  EXPECT_NEAR(estimate.value(), variance / squared, 0.12 * variance / squared);
}

TEST(NoiseScale, SaysWhenThereIsNoSignal) {
  NoiseScaleEstimate estimate;
  EXPECT_TRUE(std::isnan(estimate.value()));
  estimate.add(1, 2, 10.0, 1.0);  // averaging removed more than noise can explain
  EXPECT_TRUE(std::isnan(estimate.value()));
  EXPECT_THROW(estimate.add(2, 2, 1, 1), Error);
}

}  // namespace
}  // namespace kolo

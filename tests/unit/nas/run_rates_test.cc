// The linear scaling rule and the warm-up, step by step, against rates worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "kolo/torch/rate_scheduler.h"
#include "nas/problem/hyperparameters.h"
#include "nas/run/scaled_rates.h"

namespace kolo::nas {
namespace {

constexpr ScalingDefaults kAll{.batch = true, .rate = true, .warmup = true};

TrainingSettings settings(double rate = 0.1, std::int64_t batch = 32) {
  TrainingSettings made;
  made.learning_rate = rate;
  made.batch_size = batch;
  return made;
}

/// What an optimizer's rate is in each step.
std::vector<double> rates_of(const ScaledRates& scaled, std::size_t steps_per_epoch,
                             std::size_t epochs) {
  torch::nn::Linear net(1, 1);
  torch::optim::SGD sgd(net->parameters(), scaled.first_rate);
  RateScheduler scheduler(sgd, scaled.rate, {.steps_per_epoch = steps_per_epoch});
  std::vector<double> rates;
  for (std::size_t step = 0; step < steps_per_epoch * epochs; ++step) {
    scheduler.step();
    rates.push_back(sgd.param_groups()[0].options().get_lr());
  }
  return rates;
}

TEST(ScaledRates, WarmUpEndsAtTheScaledRate) {
  for (const int ranks : {1, 2, 4}) {
    const ScaledRates scaled = scaled_rates(settings(), ranks, kAll);
    EXPECT_EQ(scaled.global_batch, 32U * static_cast<std::size_t>(ranks));
    EXPECT_EQ(scaled.batch_per_rank, 32U);
    EXPECT_DOUBLE_EQ(scaled.peak_rate, 0.1 * ranks);
    const auto rates = rates_of(scaled, 10, 7);
    for (std::size_t step = 0; step < rates.size(); ++step) {
      const double epoch = static_cast<double>(step) / 10;
      const double by_hand = epoch < 5 ? 0.1 + (0.1 * ranks - 0.1) * epoch / 5 : 0.1 * ranks;
      EXPECT_NEAR(rates[step], by_hand, 1e-12) << ranks << " ranks, step " << step;
    }
    // After the warm-up the reference would be at 0.1 for any number of ranks.
    EXPECT_NEAR(rates.back(), 0.1 * ranks, 1e-12);
  }
}

TEST(ScaledRates, EachPartCanBeSwitchedOff) {
  TrainingSettings own = settings();
  own.lsr_learning_rate = false;
  ScaledRates scaled = scaled_rates(own, 4, kAll);
  EXPECT_EQ(scaled.global_batch, 128U);
  for (const double rate : rates_of(scaled, 3, 6)) EXPECT_DOUBLE_EQ(rate, 0.1);

  own = settings();
  own.lsr_batch_size = false;
  scaled = scaled_rates(own, 4, kAll);
  EXPECT_EQ(scaled.global_batch, 32U);
  EXPECT_EQ(scaled.batch_per_rank, 8U);
  EXPECT_DOUBLE_EQ(scaled.peak_rate, 0.4);

  own = settings();
  own.warmup_lr = false;
  for (const double rate : rates_of(scaled_rates(own, 2, kAll), 3, 2)) EXPECT_DOUBLE_EQ(rate, 0.2);

  own = settings();
  own.warmup_epochs = 2;
  const auto rates = rates_of(scaled_rates(own, 2, kAll), 4, 3);
  EXPECT_NEAR(rates[4], 0.15, 1e-12);
  EXPECT_NEAR(rates[8], 0.2, 1e-12);

  // Nothing is scaled unless told.
  scaled = scaled_rates(settings(), 4, {});
  EXPECT_EQ(scaled.global_batch, 32U);
  EXPECT_DOUBLE_EQ(scaled.peak_rate, 0.1);
  own = settings();
  own.lsr_batch_size = own.lsr_learning_rate = true;
  scaled = scaled_rates(own, 4, {});
  EXPECT_EQ(scaled.global_batch, 128U);
  EXPECT_DOUBLE_EQ(scaled.first_rate, 0.4) << "no warm-up unless told";
}

TEST(ScaledRates, RoundsABatchThatDoesNotDivide) {
  const ScaledRates scaled = scaled_rates(settings(0.1, 185), 4, {});
  EXPECT_EQ(scaled.batch_per_rank, 47U);
  EXPECT_EQ(scaled.global_batch, 188U);
}

TEST(PatienceSettings, TheNameOfAMetricSaysWhichWayIsBetter) {
  PatienceSettings settings;
  EXPECT_TRUE(settings.is_lower_better());  // val_loss
  settings.monitor = "val_r2";
  EXPECT_FALSE(settings.is_lower_better());
  settings.lower_is_better = true;
  EXPECT_TRUE(settings.is_lower_better());
}

}  // namespace
}  // namespace kolo::nas

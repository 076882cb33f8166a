// Advantages and losses of PPO, against numbers worked out by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "nas/ppo/ppo.h"

namespace kolo::nas {
namespace {

TEST(Advantages, AreTheSumsOfSurprises) {
  // delta_2 = 4 - 2 = 2; delta_1 = 0.9 * 2 - 1 = 0.8; delta_0 = 0.9 * 1 - 0.5 = 0.4
  // A_2 = 2; A_1 = 0.8 + 0.9 * 0.5 * 2 = 1.7; A_0 = 0.4 + 0.45 * 1.7 = 1.165
  const std::vector<double> rewards{0, 0, 4}, values{0.5, 1, 2};
  const auto advantages = advantages_of(rewards, values, 0.9, 0.5);
  ASSERT_EQ(advantages.size(), 3U);
  EXPECT_DOUBLE_EQ(advantages[2], 2.0);
  EXPECT_DOUBLE_EQ(advantages[1], 1.7);
  EXPECT_DOUBLE_EQ(advantages[0], 1.165);
}

TEST(Advantages, WithoutDiscountAreRewardMinusValue) {
  const auto advantages =
      advantages_of(std::vector<double>{0, 0, 3}, std::vector<double>{1, 5, -2}, 1, 1);
  EXPECT_DOUBLE_EQ(advantages[0], 2);
  EXPECT_DOUBLE_EQ(advantages[1], -2);
  EXPECT_DOUBLE_EQ(advantages[2], 5);
}

TEST(LogSoftmax, LeavesOutWhatIsMasked) {
  std::vector<double> logs;
  log_softmax(std::span<const double>(std::vector<double>{0, std::log(3.0), 1e9}), 2, logs);
  ASSERT_EQ(logs.size(), 2U);
  EXPECT_NEAR(std::exp(logs[0]), 0.25, 1e-12);
  EXPECT_NEAR(std::exp(logs[1]), 0.75, 1e-12);
}

/// Two rows of two actions, advantages +1 and -1 after normalisation.
struct TinyCase {
  TinyCase() {
    input.choices = {2, 2};
    input.actions = {0, 1};
    input.advantages = {5, 3};
    input.returns = {1, 0};
    input.old_values = {0, 0};
    input.old_log_probabilities = {std::log(0.5), std::log(0.5)};
    options.ent_coef = 0;
  }
  Loss loss() {
    return clipped_loss<double>(options, input, logits, 2, values, 1, dlogits, dvalues);
  }
  PpoOptions options;
  LossInput input;
  std::vector<double> logits{0, 0, 0, 0}, values{0, 0}, dlogits, dvalues;
};

TEST(ClippedLoss, AtTheOldPolicyIsThePolicyGradient) {
  TinyCase tiny;
  const Loss loss = tiny.loss();
  EXPECT_NEAR(loss.policy, 0, 1e-7);  // -(1 · 1 + (-1) · 1) / 2
  EXPECT_EQ(loss.clipped, 0);
  EXPECT_NEAR(loss.entropy, std::log(2.0), 1e-12);
  EXPECT_NEAR(loss.value, 0.25, 1e-12);  // half of the mean of 1 and 0
  // -A · ratio / 2 · (1 - p)
  EXPECT_NEAR(tiny.dlogits[0], -0.25, 1e-7);
  EXPECT_NEAR(tiny.dlogits[1], 0.25, 1e-7);
  EXPECT_NEAR(tiny.dlogits[2], -0.25, 1e-7);
  EXPECT_NEAR(tiny.dlogits[3], 0.25, 1e-7);
  EXPECT_NEAR(tiny.dvalues[0], 0.5 * 0.5 * -1, 1e-12);
  EXPECT_EQ(tiny.dvalues[1], 0);
}

TEST(ClippedLoss, StopsWhereTheRatioLeavesItsRange) {
  TinyCase tiny;
  tiny.logits = {std::log(3.0), 0, 0, 0};  // 0.75 of 0.5: ratio 1.5, with a good advantage
  const Loss loss = tiny.loss();
  EXPECT_NEAR(loss.policy, (-1.2 + 1) / 2, 1e-7);
  EXPECT_NEAR(loss.clipped, 0.5, 1e-12);
  EXPECT_EQ(tiny.dlogits[0], 0);
  EXPECT_EQ(tiny.dlogits[1], 0);
  EXPECT_NE(tiny.dlogits[2], 0);
  // The way back is not cut: a good action that became unlikely still pulls.
  tiny.logits = {0, std::log(3.0), 0, 0};
  EXPECT_NEAR(tiny.loss().policy, (-0.5 + 1) / 2, 1e-7);
  EXPECT_LT(tiny.dlogits[0], 0);
}

TEST(ClippedLoss, OfTheValueTakesTheWorseOfTwo) {
  TinyCase tiny;
  tiny.values = {0.5, 0};  // clipped to 0.2, whose square error 0.64 is the larger one
  EXPECT_NEAR(tiny.loss().value, 0.5 * 0.5 * 0.64, 1e-12);
  EXPECT_EQ(tiny.dvalues[0], 0);
  tiny.values = {-0.5, 0};  // clipped to -0.2, whose error is smaller
  EXPECT_NEAR(tiny.loss().value, 0.5 * 0.5 * 2.25, 1e-12);
  EXPECT_NEAR(tiny.dvalues[0], 0.5 * 0.5 * -1.5, 1e-12);
}

TEST(ClippedLoss, GradientIsThatOfFiniteDifferences) {
  TinyCase tiny;
  tiny.options.ent_coef = 0.3;
  tiny.logits = {0.3, -0.2, 0.1, 0.4};
  tiny.values = {0.1, -0.05};
  const auto whole = [&] {
    const Loss loss = tiny.loss();
    return loss.policy - tiny.options.ent_coef * loss.entropy + tiny.options.vf_coef * loss.value;
  };
  (void)whole();
  const std::vector<double> dlogits = tiny.dlogits, dvalues = tiny.dvalues;
  const auto expect_slope = [&](double& x, double gradient) {
    const double kept = x;
    x = kept + 1e-6;
    const double above = whole();
    x = kept - 1e-6;
    const double below = whole();
    x = kept;
    EXPECT_NEAR((above - below) / 2e-6, gradient, 1e-8);
  };
  for (std::size_t i = 0; i < 4; ++i) expect_slope(tiny.logits[i], dlogits[i]);
  for (std::size_t i = 0; i < 2; ++i) expect_slope(tiny.values[i], dvalues[i]);
}

TEST(ClippedLoss, MaskedActionsGetNoGradient) {
  TinyCase tiny;
  tiny.options.ent_coef = 1;
  tiny.input.choices = {2, 1};
  tiny.input.actions = {1, 0};
  tiny.input.old_log_probabilities = {std::log(0.5), 0};
  (void)tiny.loss();
  EXPECT_NE(tiny.dlogits[0], 0);
  EXPECT_EQ(tiny.dlogits[2], 0);  // the only choice there is
  EXPECT_EQ(tiny.dlogits[3], 0);
}

}  // namespace
}  // namespace kolo::nas

// The policy's network: gradients, masks, one step at a time, instruction sets.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/cpu.h"
#include "kolo/error.h"
#include "nas/ppo/kernels.h"
#include "nas/ppo/policy.h"

namespace kolo::nas {
namespace {

constexpr std::size_t kEpisodes = 3;

struct Fixture {
  explicit Fixture(bool layer_norm)
      : network({.units = 32, .layer_norm = layer_norm, .steps = 5, .actions = 4, .outputs = 4}) {
    Random random(3);
    weights.resize(network.parameters());
    gradient.resize(network.parameters());
    network.initialize(random, 1.0, weights);
    for (double& weight : weights) weight += 0.1 * random.normal();
    for (std::size_t row = 0; row < 5 * kEpisodes; ++row)
      actions.push_back(static_cast<std::uint32_t>(random.below(4)));
    // A sum of the outputs with weights of its own: its gradient is that of each of them.
    factors.resize(5 * kEpisodes * network.output_stride());
    for (std::size_t row = 0; row < 5 * kEpisodes; ++row)
      for (std::size_t k = 0; k < 4; ++k)
        factors[row * network.output_stride() + k] = random.normal();
  }

  double sum() {
    network.forward(weights, kEpisodes, actions, record, outputs);
    double total = 0;
    for (std::size_t i = 0; i < outputs.size(); ++i) total += factors[i] * outputs[i];
    return total;
  }

  Network<double> network;
  Network<double>::Record record;
  std::vector<double> weights, gradient, outputs, factors;
  std::vector<std::uint32_t> actions;
};

class Networks : public testing::TestWithParam<bool> {};

TEST_P(Networks, GradientIsThatOfFiniteDifferences) {
  Fixture f(GetParam());
  (void)f.sum();
  f.network.backward(f.weights, f.record, f.factors, f.gradient);
  Random random(4);
  double largest = 0;
  for (int probe = 0; probe < 1500; ++probe) {
    const std::size_t i = random.below(f.weights.size());
    const double kept = f.weights[i], step = 1e-5;
    f.weights[i] = kept + step;
    const double above = f.sum();
    f.weights[i] = kept - step;
    const double below = f.sum();
    f.weights[i] = kept;
    const double slope = (above - below) / (2 * step);
    ASSERT_NEAR(slope, f.gradient[i], 1e-7 * (1 + std::abs(slope))) << "parameter " << i;
    largest = std::max(largest, std::abs(slope));
  }
  EXPECT_GT(largest, 0.1) << "nothing was compared but zeros";
}

TEST_P(Networks, StepsOneByOneGiveTheSameBits) {
  NetworkShape shape{.units = 64, .layer_norm = GetParam(), .steps = 7, .actions = 9, .outputs = 9};
  Network<float> network(shape);
  std::vector<float> weights(network.parameters()), outputs;
  Random random(1);
  network.initialize(random, 1.0, weights);
  std::vector<std::uint32_t> actions;
  for (std::size_t row = 0; row < 7 * kEpisodes; ++row)
    actions.push_back(static_cast<std::uint32_t>(random.below(9)));
  Network<float>::Record record;
  network.forward(weights, kEpisodes, actions, record, outputs);
  for (std::size_t e = 0; e < kEpisodes; ++e) {
    Network<float>::Walk walk(network, weights);
    for (std::size_t t = 0; t < 7; ++t) {
      const auto row = walk.next(t == 0 ? 0 : actions[(t - 1) * kEpisodes + e]);
      EXPECT_EQ(
          std::memcmp(row.data(), outputs.data() + (t * kEpisodes + e) * network.output_stride(),
                      9 * sizeof(float)),
          0)
          << "step " << t << " of episode " << e;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LayerNorm, Networks, testing::Bool());

TEST(Networks, BeginOrthogonal) {
  const NetworkShape shape{.units = 32, .layer_norm = true, .steps = 3, .actions = 5, .outputs = 5};
  Network<double> network(shape);
  std::vector<double> weights(network.parameters());
  Random random(9);
  network.initialize(random, 0.01, weights);
  // The table of steps comes first: rows of length one, at right angles.
  const std::size_t width = 4 * shape.units;
  for (std::size_t a = 0; a < 3; ++a)
    for (std::size_t b = 0; b <= a; ++b) {
      double product = 0;
      for (std::size_t j = 0; j < width; ++j)
        product += weights[a * width + j] * weights[b * width + j];
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-12);
    }
}

TEST(Networks, HaveNames) {
  EXPECT_EQ(network_names().size(), 6U);
  EXPECT_EQ(network_shape("ppo_lstm_64").units, 64U);
  EXPECT_FALSE(network_shape("ppo_lstm_64").layer_norm);
  EXPECT_TRUE(network_shape("ppo_lnlstm_32").layer_norm);
  try {
    (void)network_shape("ppo_lnlstm_129");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(error.message().find("ppo_lnlstm_128"), std::string::npos);
  }
}

TEST(Kernels, InstructionSetsAgree) {
  constexpr std::size_t kRows = 13, kColumns = 64, kDepth = 37;
  Random random(5);
  std::vector<float> a(kRows * kDepth), b(kDepth * kColumns);
  for (float& x : a) x = static_cast<float>(random.normal());
  for (float& x : b) x = static_cast<float>(random.normal());
  const auto run = [&](InstructionSet set) {
    std::vector<float> c(kRows * kColumns), scales(kRows);
    kernels<float>(set).multiply(kRows, kColumns, kDepth, a.data(), kDepth, 1, b.data(),
                                 Layout::plain(kColumns), c.data(), kColumns, false);
    kernels<float>(set).normalize(kRows, kColumns, c.data(), scales.data());
    return c;
  };
  const auto plain = run(InstructionSet::baseline);
  std::vector<float> fused;  // the sets with fused multiply-add have the same bits
  for (const InstructionSet set : usable_instruction_sets()) {
    const auto result = run(set);
    for (std::size_t i = 0; i < plain.size(); ++i)
      EXPECT_NEAR(result[i], plain[i], 1e-5) << to_string(set);
    if (set == InstructionSet::baseline) continue;
    if (fused.empty()) fused = result;
    EXPECT_EQ(result, fused) << to_string(set);
  }
}

}  // namespace
}  // namespace kolo::nas

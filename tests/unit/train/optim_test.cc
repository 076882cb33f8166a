// LARS and LAMB step by step against the papers' formulae, written out here on plain numbers.
#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <sstream>

#include "kolo/error.h"
#include "kolo/torch/lamb.h"
#include "kolo/torch/lars.h"
#include "train/optim/serialization.h"

namespace kolo {
namespace {

using Numbers = std::vector<double>;

double norm(const Numbers& numbers) {
  double sum = 0;
  for (double number : numbers) sum += number * number;
  return std::sqrt(sum);
}

/// Gradients of step t, the same for both sides.
Numbers gradient_at(int t, std::size_t count) {
  Numbers gradient;
  for (std::size_t i = 0; i < count; ++i)
    gradient.push_back(std::sin(0.7 * static_cast<double>(i + 1) * (t + 1)) * 0.3);
  return gradient;
}

Numbers first_weights(std::size_t count) {
  Numbers weights;
  for (std::size_t i = 0; i < count; ++i) weights.push_back(0.1 * static_cast<double>(i) - 0.25);
  return weights;
}

torch::Tensor to_tensor(const Numbers& numbers, torch::IntArrayRef shape) {
  return torch::tensor(numbers, torch::kFloat64).view(shape).clone();
}

void expect_close(const torch::Tensor& actual, const Numbers& expected, int step) {
  torch::Tensor flat = actual.detach().flatten();
  for (std::size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(flat[static_cast<int64_t>(i)].item<double>(), expected[i], 1e-14)
        << "step " << step << ", element " << i;
}

TEST(Lars, FollowsThePaper) {
  constexpr double kRate = 0.5, kMomentum = 0.9, kDecay = 5e-4, kTrust = 0.02;
  constexpr std::size_t kCount = 6;
  torch::Tensor matrix = to_tensor(first_weights(kCount), {2, 3}).requires_grad_();
  torch::Tensor bias = to_tensor(first_weights(4), {4}).requires_grad_();
  Lars optimizer({matrix, bias},
                 LarsOptions(kRate).momentum(kMomentum).weight_decay(kDecay).trust(kTrust));
  Numbers w = first_weights(kCount), v(kCount, 0.0), b = first_weights(4), vb(4, 0.0);
  for (int t = 0; t < 20; ++t) {
    const Numbers g = gradient_at(t, kCount), gb = gradient_at(t, 4);
    matrix.mutable_grad() = to_tensor(g, {2, 3});
    bias.mutable_grad() = to_tensor(gb, {4});
    optimizer.step();
    const double local = kTrust * norm(w) / (norm(g) + kDecay * norm(w));
    for (std::size_t i = 0; i < kCount; ++i) {
      v[i] = kMomentum * v[i] + kRate * local * (g[i] + kDecay * w[i]);
      w[i] -= v[i];
    }
    for (std::size_t i = 0; i < 4; ++i) {
      vb[i] = kMomentum * vb[i] + kRate * gb[i];
      b[i] -= vb[i];
    }
    expect_close(matrix, w, t);
    expect_close(bias, b, t);
  }
}

TEST(Lars, StartsFromZeroWeights) {
  torch::Tensor weights = torch::zeros({2, 2}, torch::kFloat64).requires_grad_();
  Lars optimizer({weights}, LarsOptions(0.1).momentum(0));
  weights.mutable_grad() = torch::ones({2, 2}, torch::kFloat64);
  optimizer.step();
  EXPECT_TRUE(weights.allclose(torch::full({2, 2}, -0.1, torch::kFloat64)));
}

TEST(Lamb, FollowsThePaper) {
  constexpr double kRate = 0.01, kBeta1 = 0.9, kBeta2 = 0.99, kEps = 1e-6, kDecay = 0.01;
  constexpr std::size_t kCount = 6;
  torch::Tensor weights = to_tensor(first_weights(kCount), {3, 2}).requires_grad_();
  Lamb optimizer({weights},
                 LambOptions(kRate).betas({kBeta1, kBeta2}).eps(kEps).weight_decay(kDecay));
  Numbers w = first_weights(kCount), m(kCount, 0.0), s(kCount, 0.0);
  for (int t = 1; t <= 20; ++t) {
    const Numbers g = gradient_at(t, kCount);
    weights.mutable_grad() = to_tensor(g, {3, 2});
    optimizer.step();
    Numbers u(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
      m[i] = kBeta1 * m[i] + (1 - kBeta1) * g[i];
      s[i] = kBeta2 * s[i] + (1 - kBeta2) * g[i] * g[i];
      const double mean = m[i] / (1 - std::pow(kBeta1, t)),
                   square = s[i] / (1 - std::pow(kBeta2, t));
      u[i] = mean / (std::sqrt(square) + kEps) + kDecay * w[i];
    }
    const double ratio = norm(w) / norm(u);
    for (std::size_t i = 0; i < kCount; ++i) w[i] -= kRate * ratio * u[i];
    expect_close(weights, w, t);
  }
}

TEST(Lamb, ClipsTheNormOfWeights) {
  torch::Tensor weights = torch::full({4}, 100.0, torch::kFloat64).requires_grad_();
  Lamb optimizer({weights}, LambOptions(1.0).high(10).eps(0));
  weights.mutable_grad() = torch::ones({4}, torch::kFloat64);
  optimizer.step();  // update 1 in each component, norm 2; phi = 10; so 5 in each
  EXPECT_NEAR(weights[0].item<double>(), 95.0, 1e-12);
}

TEST(Optimizers, RefuseBadSettings) {
  torch::Tensor weights = torch::ones({2}).requires_grad_();
  const std::vector<torch::Tensor> parameters{weights};
  EXPECT_THROW(Lars(parameters, LarsOptions(-1)), Error);
  EXPECT_THROW(Lamb(parameters, LambOptions(0.1).betas({0.9, 1.0})), Error);
}

/// Some steps of an optimizer with gradients that differ from step to step.
void run(torch::optim::Optimizer& optimizer, int first, int count) {
  for (int t = first; t < first + count; ++t) {
    int k = 0;
    for (auto& group : optimizer.param_groups())
      for (auto& weights : group.params()) {
        const auto size = static_cast<std::size_t>(weights.numel());
        weights.mutable_grad() = to_tensor(gradient_at(t + k++, size), weights.sizes());
      }
    optimizer.step();
  }
}

template <class Optimizer, class Options>
void expect_restored(Options options, const char* name) {
  auto fresh = [] {
    return std::vector<torch::Tensor>{to_tensor(first_weights(6), {2, 3}).requires_grad_(),
                                      to_tensor(first_weights(3), {3}).requires_grad_()};
  };
  auto a = fresh(), b = fresh(), never = fresh();
  Optimizer first(a, options);
  run(first, 0, 5);
  first.param_groups()[0].options().set_lr(0.0123);
  const std::string bytes = train::optimizer_bytes(first);
  run(first, 5, 3);

  auto other_options = options;
  other_options.lr(0.9);
  Optimizer second(b, other_options);
  run(second, 50, 2);  // state of its own, to be replaced
  {
    torch::NoGradGuard no_grad;
    auto c = fresh();
    Optimizer replay(c, options);
    torch::AutoGradMode with(true);
    run(replay, 0, 5);
    torch::NoGradGuard again;
    for (std::size_t i = 0; i < b.size(); ++i) b[i].copy_(c[i]);
  }
  train::load_optimizer_bytes(second, bytes);
  EXPECT_DOUBLE_EQ(second.param_groups()[0].options().get_lr(), 0.0123) << name;
  run(second, 5, 3);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].equal(b[i])) << name;

  // State that the saved optimizer did not have is gone after loading.
  Optimizer empty(never, options);
  const std::string nothing = train::optimizer_bytes(empty);
  train::load_optimizer_bytes(second, nothing);
  EXPECT_EQ(second.state().size(), empty.state().size()) << name;
}

TEST(OptimizerState, ComesBackForEveryKind) {
  expect_restored<torch::optim::SGD>(torch::optim::SGDOptions(0.1).momentum(0.9), "SGD");
  expect_restored<torch::optim::Adam>(torch::optim::AdamOptions(0.1).amsgrad(true), "Adam");
  expect_restored<torch::optim::AdamW>(torch::optim::AdamWOptions(0.1), "AdamW");
  expect_restored<torch::optim::RMSprop>(
      torch::optim::RMSpropOptions(0.1).momentum(0.9).centered(true), "RMSprop");
  expect_restored<torch::optim::Adagrad>(torch::optim::AdagradOptions(0.1), "Adagrad");
  expect_restored<Lars>(LarsOptions(0.1).weight_decay(1e-4), "Lars");
  expect_restored<Lamb>(LambOptions(0.1).weight_decay(1e-4), "Lamb");
}

TEST(OptimizerState, MustFit) {
  torch::Tensor a = torch::ones({2}).requires_grad_(), b = torch::ones({2}).requires_grad_();
  torch::optim::SGD one({a}, 0.1), two({a, b}, 0.1);
  EXPECT_THROW(train::load_optimizer_bytes(two, train::optimizer_bytes(one)), Error);
}

}  // namespace
}  // namespace kolo

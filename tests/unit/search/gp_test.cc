#include "search/surrogate/gp.h"

#include <gtest/gtest.h>

#include <Eigen/Cholesky>
#include <cmath>
#include <cstring>

#include "base/cpu.h"
#include "kolo/random.h"
#include "search/surrogate/dense_kernels.h"
#include "search/surrogate/gp_covariance.h"
#include "search/surrogate/gp_likelihood.h"
#include "search/surrogate/lbfgs.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd random_matrix(Index rows, Index columns, Random& random) {
  MatrixXd matrix(rows, columns);
  for (Index j = 0; j < columns; ++j)
    for (Index i = 0; i < rows; ++i) matrix(i, j) = random.uniform();
  return matrix;
}

/// Two numbers with warps, one number without, a categorical with three choices.
struct Problem {
  GpShape shape{.group = {0, 1, 2, 3, 3, 3}, .groups = 4, .warped = {0, 1}};
  MatrixXd inputs;
  VectorXd targets;
  VectorXd parameters;

  explicit Problem(Index n, std::uint64_t seed = 1) : inputs(n, 6), targets(n) {
    Random random(seed);
    inputs = random_matrix(n, 6, random);
    for (Index i = 0; i < n; ++i) {
      const auto choice = static_cast<Index>(random.below(3));
      for (Index c = 0; c < 3; ++c) inputs(i, 3 + c) = c == choice ? std::sqrt(0.5) : 0.0;
      targets[i] = std::sin(5 * inputs(i, 0)) + inputs(i, 1) * inputs(i, 2) +
                   0.3 * static_cast<double>(choice) + 0.05 * random.normal();
    }
    parameters.resize(shape.parameters());
    for (Index i = 0; i < parameters.size(); ++i) parameters[i] = 0.4 * random.normal();
    parameters[shape.noise()] = -4.0;
  }
};

/// Central differences against the analytic gradient.
void expect_gradient(const SmoothFunction& function, const VectorXd& at, double step,
                     double tolerance) {
  VectorXd gradient(at.size()), ignored(at.size());
  function(at, gradient);
  for (Index i = 0; i < at.size(); ++i) {
    VectorXd up = at, down = at;
    up[i] += step;
    down[i] -= step;
    const double numeric = (function(up, ignored) - function(down, ignored)) / (2 * step);
    EXPECT_NEAR(gradient[i], numeric, tolerance * (1.0 + std::abs(numeric))) << "component " << i;
  }
}

TEST(DenseKernels, SameBitsOnEveryInstructionSet) {
  Random random(3);
  const MatrixXd a = random_matrix(83, 201, random), b = random_matrix(37, 201, random);
  const MatrixXd start = random_matrix(83, 37, random);
  VectorXd distances(1001);
  for (Index i = 0; i < distances.size(); ++i) distances[i] = 1e-3 * static_cast<double>(i * i);
  auto run = [&](const DenseKernels& kernels) {
    MatrixXd c = start;
    kernels.subtract_product(83, 37, 201, a.data(), 83, b.data(), 37, c.data(), 83);
    VectorXd k = distances, slopes(k.size());
    kernels.matern52_with_slope(k.data(), slopes.data(), k.size(), 1.3);
    VectorXd all(c.size() + k.size() + slopes.size());
    all << Eigen::Map<VectorXd>(c.data(), c.size()), k, slopes;
    return all;
  };
  const VectorXd baseline = run(dense_kernels(InstructionSet::baseline));
  for (const InstructionSet set : usable_instruction_sets()) {
    const VectorXd other = run(dense_kernels(set));
    EXPECT_EQ(std::memcmp(baseline.data(), other.data(), baseline.size() * sizeof(double)), 0)
        << to_string(set);
  }

  const MatrixXd expected = start - a * b.transpose();
  EXPECT_LT((Eigen::Map<const MatrixXd>(baseline.data(), 83, 37) - expected).cwiseAbs().maxCoeff(),
            1e-12);
  for (Index i = 0; i < distances.size(); ++i) {
    const double s = std::sqrt(5 * distances[i]);
    const double k = 1.3 * (1 + s + s * s / 3) * std::exp(-s);
    EXPECT_NEAR(baseline[83 * 37 + i], k, 4e-16 + 2e-15 * k);
  }
}

TEST(Cholesky, FactorsGrowsAndInverts) {
  Random random(5);
  const MatrixXd x = random_matrix(150, 4, random);
  const MatrixXd k = covariance_lower(x, 1.5, 0.01).selfadjointView<Eigen::Lower>();
  CholeskyFactor whole, grown;
  whole.factor(k, 1e-12);
  grown.factor(k.topLeftCorner(90, 90), 1e-12);
  for (Index i = 90; i < 150; ++i) grown.append(k.col(i).head(i), k(i, i), 1e-12);
  const MatrixXd expected = k.llt().matrixL();
  for (Index j = 0; j < 150; ++j)
    for (Index i = j; i < 150; ++i) {
      EXPECT_NEAR(whole.at(i, j), expected(i, j), 1e-10);
      EXPECT_NEAR(grown.at(i, j), expected(i, j), 1e-10);
    }
  EXPECT_LT((whole.inverse() * k - MatrixXd::Identity(150, 150)).cwiseAbs().maxCoeff(), 1e-8);

  MatrixXd rows = random_matrix(7, 150, random);
  const MatrixXd right = rows;
  whole.solve_rows(rows);
  EXPECT_LT((rows * expected.transpose() - right).cwiseAbs().maxCoeff(), 1e-9);
  VectorXd vector = right.row(0).transpose();
  whole.solve_lower(vector);
  whole.solve_upper(vector);
  EXPECT_LT((k * vector - right.row(0).transpose()).cwiseAbs().maxCoeff(), 1e-8);
}

TEST(Cholesky, SurvivesDuplicates) {
  const MatrixXd same = MatrixXd::Constant(40, 3, 0.5);
  CholeskyFactor factor;
  factor.factor(covariance_lower(same, 1.0, 0.0), 1e-10);
  VectorXd x = VectorXd::Ones(40);
  factor.solve_lower(x);
  EXPECT_TRUE(x.allFinite());
}

TEST(GpLikelihood, GradientMatchesFiniteDifferences) {
  const Problem problem(60);
  const GpPrior prior = make_gp_prior(problem.shape);
  const GpLikelihood likelihood(problem.shape, prior, problem.inputs, problem.targets);
  expect_gradient([&](const VectorXd& at, VectorXd& gradient) { return likelihood(at, gradient); },
                  problem.parameters, 1e-5, 1e-5);
}

TEST(GaussianProcess, PredictionGradientMatchesFiniteDifferences) {
  const Problem problem(50);
  GaussianProcess gp(problem.shape);
  gp.condition(problem.inputs, problem.parameters);
  gp.set_targets(problem.targets);
  Random random(9);
  const VectorXd at = random_matrix(6, 1, random);
  expect_gradient(
      [&](const VectorXd& x, VectorXd& gradient) {
        const auto slope = gp.predict_slope(x.transpose());
        gradient = slope.mean_gradient;
        return slope.mean;
      },
      at, 1e-5, 1e-6);
  expect_gradient(
      [&](const VectorXd& x, VectorXd& gradient) {
        const auto slope = gp.predict_slope(x.transpose());
        gradient = slope.variance_gradient;
        return slope.variance;
      },
      at, 1e-5, 1e-6);
}

TEST(GaussianProcess, LearnsAndInterpolates) {
  const Problem train(120), test(200, 77);
  GaussianProcess gp(train.shape);
  VectorXd parameters = make_gp_prior(train.shape).mean;
  learn_gp_parameters(train.shape, train.inputs, train.targets, 256, 60, parameters);
  gp.condition(train.inputs, parameters);
  gp.set_targets(train.targets);
  const auto prediction = gp.predict(test.inputs);
  const double error = (prediction.mean - test.targets).norm() / std::sqrt(200.0);
  EXPECT_LT(error, 0.12);  // the noise alone is 0.05, the spread of the targets 0.7
  int inside = 0;
  for (Index i = 0; i < 200; ++i)
    inside += std::abs(prediction.mean[i] - test.targets[i]) <
              2 * std::sqrt(prediction.variance[i] + gp.noise());
  EXPECT_GT(inside, 170);
  EXPECT_LT((gp.predict_mean(test.inputs) - prediction.mean).cwiseAbs().maxCoeff(), 1e-12);
}

TEST(GaussianProcess, GrowingEqualsConditioningAnew) {
  const Problem problem(80);
  GaussianProcess whole(problem.shape), grown(problem.shape);
  whole.condition(problem.inputs, problem.parameters);
  grown.condition(problem.inputs.topRows(60), problem.parameters);
  for (Index i = 60; i < 80; ++i) grown.append(problem.inputs.row(i));
  whole.set_targets(problem.targets);
  grown.set_targets(problem.targets);
  const auto a = whole.predict(problem.inputs), b = grown.predict(problem.inputs);
  EXPECT_LT((a.mean - b.mean).cwiseAbs().maxCoeff(), 1e-8);
  EXPECT_LT((a.variance - b.variance).cwiseAbs().maxCoeff(), 1e-8);
}

TEST(GaussianProcess, PendingKeepsTheMeanAndShrinksTheVariance) {
  const Problem problem(40), elsewhere(5, 8);
  GaussianProcess gp(problem.shape);
  gp.condition(problem.inputs, problem.parameters);
  gp.set_targets(problem.targets);
  const auto before = gp.predict(elsewhere.inputs);
  gp.append_pending(elsewhere.inputs.row(0));
  const auto after = gp.predict(elsewhere.inputs);
  EXPECT_LT((before.mean - after.mean).cwiseAbs().maxCoeff(), 1e-10);
  EXPECT_LT(after.variance[0], 0.5 * before.variance[0]);
  gp.truncate(40);
  const auto restored = gp.predict(elsewhere.inputs);
  EXPECT_EQ(restored.mean, before.mean);
  EXPECT_EQ(restored.variance, before.variance);
}

TEST(Lbfgs, FindsACornerOfTheBox) {
  VectorXd x = VectorXd::Constant(2, -1.0);
  const double value = minimise_lbfgs(
      [](const VectorXd& at, VectorXd& gradient) {  // Rosenbrock's valley
        const double a = at[0], b = at[1];
        gradient[0] = -400 * a * (b - a * a) - 2 * (1 - a);
        gradient[1] = 200 * (b - a * a);
        return 100 * (b - a * a) * (b - a * a) + (1 - a) * (1 - a);
      },
      x, VectorXd::Constant(2, -2.0), VectorXd::Constant(2, 0.5),
      {.evaluations = 400, .gradient = 1e-8, .decrease = 0});
  EXPECT_NEAR(x[0], 0.5, 1e-6);
  EXPECT_NEAR(x[1], 0.25, 1e-6);
  EXPECT_NEAR(value, 0.25, 1e-9);
}

}  // namespace
}  // namespace kolo::search

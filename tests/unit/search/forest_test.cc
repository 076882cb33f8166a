#include "search/surrogate/forest.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kolo/random.h"

namespace kolo::search {
namespace {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

/// A number that matters, one that does not, and a categorical with four choices.
struct Data {
  MatrixXd inputs;
  VectorXd targets;
  std::vector<int> choices{0, 0, 4};

  Data(Index n, double noise, std::uint64_t seed) : inputs(n, 3), targets(n) {
    Random random(seed);
    for (Index i = 0; i < n; ++i) {
      inputs(i, 0) = random.uniform();
      inputs(i, 1) = random.uniform();
      inputs(i, 2) = static_cast<double>(random.below(4));
      targets[i] = 3 * inputs(i, 0) + (inputs(i, 2) == 2 ? -2 : 0) + noise * random.normal();
    }
  }
};

class ForestKinds : public testing::TestWithParam<ForestOptions::Split> {
 protected:
  [[nodiscard]] ForestOptions options() const {
    ForestOptions options;
    options.split = GetParam();
    options.bootstrap = GetParam() == ForestOptions::Split::best;
    return options;
  }
};

TEST_P(ForestKinds, LearnNumbersAndChoices) {
  const Data train(400, 0.05, 1), test(200, 0.0, 2);
  Forest forest;
  forest.fit(train.inputs, train.targets, train.choices, options(), Random(7));
  const auto prediction = forest.predict(test.inputs);
  const double error = (prediction.mean - test.targets).norm() / std::sqrt(200.0);
  EXPECT_LT(error, 0.25);  // the targets' spread is 1.2
  EXPECT_GE(prediction.between.minCoeff(), 0.0);
  EXPECT_GE(prediction.within.minCoeff(), 0.0);
}

TEST_P(ForestKinds, AreReproducible) {
  const Data data(150, 0.1, 3);
  Forest a, b, other;
  a.fit(data.inputs, data.targets, data.choices, options(), Random(7));
  b.fit(data.inputs, data.targets, data.choices, options(), Random(7));
  other.fit(data.inputs, data.targets, data.choices, options(), Random(8));
  EXPECT_EQ(a.predict(data.inputs).mean, b.predict(data.inputs).mean);
  const Data elsewhere(50, 0.1, 4);
  EXPECT_NE(a.predict(elsewhere.inputs).mean, other.predict(elsewhere.inputs).mean);
}

TEST_P(ForestKinds, TellDoubtFromNoise) {
  // Large leaves hold noise; the trees agree about its mean.
  const Data noisy(2000, 1.0, 5);
  ForestOptions large = options();
  large.min_samples_split = 200;
  Forest forest;
  forest.fit(noisy.inputs, noisy.targets, noisy.choices, large, Random(1));
  const auto prediction = forest.predict(noisy.inputs);
  EXPECT_GT(prediction.within.mean(), 0.7);
  EXPECT_LT(prediction.between.mean(), 0.3);
}

INSTANTIATE_TEST_SUITE_P(Splits, ForestKinds,
                         testing::Values(ForestOptions::Split::best, ForestOptions::Split::random),
                         [](const auto& info) {
                           return info.param == ForestOptions::Split::best ? "best" : "random";
                         });

TEST(Forest, ConstantTargetsMakeOneLeaf) {
  Data data(50, 0.0, 1);
  data.targets.setConstant(4.0);
  Forest forest;
  forest.fit(data.inputs, data.targets, data.choices, {}, Random(1));
  const auto prediction = forest.predict(data.inputs);
  EXPECT_EQ(prediction.mean, VectorXd::Constant(50, 4.0));
  EXPECT_EQ(prediction.between.maxCoeff(), 0.0);
}

TEST(Forest, AssumptionsMoveTheMeanAndAreForgotten) {
  const Data data(100, 0.1, 6);
  Forest forest;
  forest.fit(data.inputs, data.targets, data.choices, {}, Random(1));
  const auto leaves = forest.locate(data.inputs.topRows(1));
  const auto before = forest.predict(leaves);
  const Eigen::Matrix<std::int32_t, 1, Eigen::Dynamic> own = leaves.row(0);
  const std::span<const std::int32_t> row(own.data(), static_cast<std::size_t>(own.size()));
  forest.assume(row, 100.0);
  forest.assume(row, 100.0);
  EXPECT_GT(forest.predict(leaves).mean[0], before.mean[0] + 10.0);
  forest.forget();
  EXPECT_EQ(forest.predict(leaves).mean, before.mean);
  EXPECT_EQ(forest.predict(leaves).within, before.within);
}

}  // namespace
}  // namespace kolo::search

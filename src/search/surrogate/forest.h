// Random forests and extremely randomised trees for regression.
//
// Breiman, "Random forests" (2001): each tree sees a bootstrap sample, each node a random subset of
// the features, and takes the best split. Geurts, Ernst and Wehenkel, "Extremely randomized trees"
// (2006): each tree sees the sample, each node takes the best of one random split per feature; many
// such trees vary smoothly between the observations, which suits optimisation.
//
// The prediction at x is the mean over trees of the mean in x's leaf. Its variance has two parts
// (Hutter et al., "Algorithm runtime prediction", 2014): *between* trees, the doubt about the
// function (epistemic), and the mean variance *within* leaves, the noise (aleatoric).
//
// Categorical features are split into two sets of choices: by the order of their mean targets for
// best splits (Fisher, 1958: the optimum for squares), at random for random splits.
//
// Cost of a fit: trees · sample · log(sample) · features tried. Trees are flat arrays.
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kolo/random.h"

namespace kolo::search {

struct ForestOptions {
  enum class Split { best, random };

  Split split = Split::random;
  int trees = 30;
  bool bootstrap = false;
  double max_samples = 1.0;   // share of the observations that a tree sees
  int most_samples = 1500;    // and their number at most, to bound the cost of a fit
  double max_features = 1.0;  // share of the features that a node tries, at least one
  int min_samples_split = 2;
};

class Forest {
 public:
  /// Rows of `inputs` are observations. `choices` holds the number of choices of each column, 0 for
  /// numbers; a categorical column holds indices. More than 64 choices are treated as numbers.
  void fit(const Eigen::MatrixXd& inputs, const Eigen::VectorXd& targets,
           const std::vector<int>& choices, const ForestOptions& options, Random random);

  [[nodiscard]] bool empty() const { return roots_.empty(); }

  struct Prediction {
    Eigen::VectorXd mean;
    Eigen::VectorXd between;  // variance of the trees' means
    Eigen::VectorXd within;   // mean of the leaves' variances
  };
  /// The leaf of each row (a row of the result) in each tree (a column).
  using Leaves = Eigen::Matrix<std::int32_t, Eigen::Dynamic, Eigen::Dynamic>;
  [[nodiscard]] Leaves locate(const Eigen::MatrixXd& inputs) const;
  [[nodiscard]] Prediction predict(const Leaves& leaves) const;
  [[nodiscard]] Prediction predict(const Eigen::MatrixXd& inputs) const {
    return predict(locate(inputs));
  }

  /// Adds one observation to the leaves it falls into, without growing the trees: a cheap
  /// approximation of a new fit, for values that are assumed. forget() takes all of them back.
  void assume(std::span<const std::int32_t> leaves, double target);
  void forget();

 private:
  friend class TreeBuilder;

  struct Node {
    std::int32_t feature = -1;  // -1: a leaf
    std::int32_t left = 0;      // the right child follows the left one
    float threshold = 0;        // numbers: left if x <= threshold
    std::uint64_t choices = 0;  // categoricals: left if the bit of x is set
    float count = 0;            // observations below
    double mean = 0, variance = 0;
  };

  /// What a walk down the trees reads of a node, if all columns are numbers. A leaf leads to
  /// itself.
  struct Step {
    std::int32_t feature, left;
    float threshold;
  };

  [[nodiscard]] std::vector<Step> steps() const;

  std::vector<Node> nodes_;
  std::vector<Step> steps_;  // empty if there are categorical columns
  std::vector<std::int32_t> roots_;
  std::vector<char> categorical_;                      // of each column
  std::vector<std::pair<std::int32_t, Node>> before_;  // leaves as they were before assume()
};

}  // namespace kolo::search

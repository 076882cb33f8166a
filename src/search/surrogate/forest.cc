#include "search/surrogate/forest.h"

#include <algorithm>
#include <cmath>

#include "search/surrogate/tree_builder.h"

namespace kolo::search {

using Eigen::Index;

void Forest::fit(const Eigen::MatrixXd& inputs, const Eigen::VectorXd& targets,
                 const std::vector<int>& choices, const ForestOptions& options, Random random) {
  nodes_.clear();
  roots_.clear();
  categorical_.assign(inputs.cols(), 0);
  for (std::size_t c = 0; c < choices.size(); ++c)
    categorical_[c] = choices[c] > 0 && choices[c] <= 64 ? 1 : 0;
  TreeBuilder builder(inputs, targets, categorical_, options);
  for (int t = 0; t < options.trees; ++t) {
    Random own = random.stream("tree", static_cast<std::uint64_t>(t));
    roots_.push_back(builder.build(own, nodes_));
  }
}

Forest::Prediction Forest::predict(const Eigen::MatrixXd& inputs) const {
  const Index count = inputs.rows(), width = inputs.cols();
  Prediction prediction{Eigen::VectorXd::Zero(count), Eigen::VectorXd::Zero(count),
                        Eigen::VectorXd::Zero(count)};
  // Row by row in memory: a walk down a tree reads many columns of one row.
  std::vector<float> rows(static_cast<std::size_t>(count * width));
  for (Index c = 0; c < width; ++c)
    for (Index i = 0; i < count; ++i) rows[i * width + c] = static_cast<float>(inputs(i, c));
  Eigen::VectorXd squares = Eigen::VectorXd::Zero(count);
  for (const std::int32_t root : roots_) {
    for (Index i = 0; i < count; ++i) {
      const float* row = rows.data() + i * width;
      const Node* node = &nodes_[root];
      while (node->feature >= 0) {
        const float x = row[node->feature];
        const bool left = categorical_[node->feature] != 0
                              ? ((node->choices >> static_cast<unsigned>(x)) & 1U) != 0
                              : x <= node->threshold;
        node = &nodes_[node->left + (left ? 0 : 1)];
      }
      prediction.mean[i] += node->mean;
      squares[i] += node->mean * node->mean;
      prediction.within[i] += node->variance;
    }
  }
  const double trees = static_cast<double>(roots_.size());
  prediction.mean /= trees;
  prediction.within /= trees;
  prediction.between = (squares / trees - prediction.mean.cwiseAbs2()).cwiseMax(0.0);
  return prediction;
}

}  // namespace kolo::search

// All trees lie in one array of nodes; the right child follows the left one. For predictions the
// nodes are compressed into Steps without branches: a leaf points to itself with a threshold of
// infinity, so that several walks can go on side by side until none of them moves.
//
// assume() puts a value into the leaves of a point as if it were one more observation, and forget()
// takes all of these back.
#include "search/surrogate/forest.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "search/surrogate/tree_builder.h"

namespace kolo::search {

using Eigen::Index;

void Forest::fit(const Eigen::MatrixXd& inputs, const Eigen::VectorXd& targets,
                 const std::vector<int>& choices, const ForestOptions& options, Random random) {
  nodes_.clear();
  before_.clear();
  roots_.clear();
  categorical_.assign(inputs.cols(), 0);
  for (std::size_t c = 0; c < choices.size(); ++c)
    categorical_[c] = choices[c] > 0 && choices[c] <= 64 ? 1 : 0;
  TreeBuilder builder(inputs, targets, categorical_, options);
  for (int t = 0; t < options.trees; ++t) {
    Random own = random.stream("tree", static_cast<std::uint64_t>(t));
    roots_.push_back(builder.build(own, nodes_));
  }
  steps_ = steps();
}

std::vector<Forest::Step> Forest::steps() const {
  std::vector<Step> steps;
  if (std::find(categorical_.begin(), categorical_.end(), 1) != categorical_.end()) return steps;
  steps.reserve(nodes_.size());
  for (std::size_t at = 0; at < nodes_.size(); ++at) {
    const Node& node = nodes_[at];
    const bool leaf = node.feature < 0;
    steps.push_back({leaf ? 0 : node.feature, leaf ? static_cast<std::int32_t>(at) : node.left,
                     leaf ? std::numeric_limits<float>::infinity() : node.threshold});
  }
  return steps;
}

Forest::Leaves Forest::locate(const Eigen::MatrixXd& inputs) const {
  const Index count = inputs.rows(), width = inputs.cols();
  // Row by row in memory: a walk down a tree reads many columns of one row.
  std::vector<float> rows(static_cast<std::size_t>(count * width));
  for (Index c = 0; c < width; ++c)
    for (Index i = 0; i < count; ++i) rows[i * width + c] = static_cast<float>(inputs(i, c));
  Leaves leaves(count, static_cast<Index>(roots_.size()));
  for (Index tree = 0; tree < leaves.cols(); ++tree) {
    Index i = 0;
    // Several walks side by side: the memory of one is waited for while another goes on.
    constexpr Index kSide = 8;
    for (; !steps_.empty() && width > 0 && i + kSide <= count; i += kSide) {
      const float* row = rows.data() + i * width;
      std::int32_t at[kSide];
      std::fill_n(at, kSide, roots_[tree]);
      for (std::int32_t moved = 1; moved != 0;) {
        moved = 0;
        for (Index k = 0; k < kSide; ++k) {
          const Step& step = steps_[at[k]];
          const std::int32_t next =
              step.left + static_cast<std::int32_t>(row[k * width + step.feature] > step.threshold);
          moved |= next ^ at[k];
          at[k] = next;
        }
      }
      for (Index k = 0; k < kSide; ++k) leaves(i + k, tree) = at[k];
    }
    for (; i < count; ++i) {
      const float* row = rows.data() + i * width;
      std::int32_t at = roots_[tree];
      for (const Node* node = &nodes_[at]; node->feature >= 0; node = &nodes_[at]) {
        const float x = row[node->feature];
        const bool left = categorical_[node->feature] != 0
                              ? ((node->choices >> static_cast<unsigned>(x)) & 1U) != 0
                              : x <= node->threshold;
        at = node->left + (left ? 0 : 1);
      }
      leaves(i, tree) = at;
    }
  }
  return leaves;
}

Forest::Prediction Forest::predict(const Leaves& leaves) const {
  const Index count = leaves.rows();
  Prediction prediction{Eigen::VectorXd::Zero(count), Eigen::VectorXd::Zero(count),
                        Eigen::VectorXd::Zero(count)};
  Eigen::VectorXd squares = Eigen::VectorXd::Zero(count);
  for (Index tree = 0; tree < leaves.cols(); ++tree) {
    for (Index i = 0; i < count; ++i) {
      const Node& leaf = nodes_[leaves(i, tree)];
      prediction.mean[i] += leaf.mean;
      squares[i] += leaf.mean * leaf.mean;
      prediction.within[i] += leaf.variance;
    }
  }
  const double trees = static_cast<double>(leaves.cols());
  prediction.mean /= trees;
  prediction.within /= trees;
  prediction.between = (squares / trees - prediction.mean.cwiseAbs2()).cwiseMax(0.0);
  return prediction;
}

void Forest::assume(std::span<const std::int32_t> leaves, double target) {
  for (const std::int32_t at : leaves) {
    Node& leaf = nodes_[at];
    before_.emplace_back(at, leaf);
    const double count = leaf.count, more = count + 1.0, off = target - leaf.mean;
    leaf.mean += off / more;
    leaf.variance = count / more * (leaf.variance + off * off / more);
    leaf.count = static_cast<float>(more);
  }
}

void Forest::forget() {
  // Backwards: a leaf that was changed twice gets its first state back.
  for (auto change = before_.rbegin(); change != before_.rend(); ++change)
    nodes_[change->first] = change->second;
  before_.clear();
}

}  // namespace kolo::search

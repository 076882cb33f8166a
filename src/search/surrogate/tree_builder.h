// Grows the trees of a forest (forest.h).
#pragma once

#include <Eigen/Core>
#include <cstdint>
#include <vector>

#include "kolo/random.h"
#include "search/surrogate/forest.h"

namespace kolo::search {

class TreeBuilder {
 public:
  using Node = Forest::Node;

  /// Keeps references.
  TreeBuilder(const Eigen::MatrixXd& inputs, const Eigen::VectorXd& targets,
              const std::vector<char>& categorical, const ForestOptions& options);

  /// Appends a tree to `nodes` and returns the place of its root.
  std::int32_t build(Random& random, std::vector<Node>& nodes);

 private:
  struct Range {
    std::int32_t node;
    std::uint32_t begin, end;  // in rows_ and ys_
  };
  struct Split {
    double score = 0.0;  // sum of squares explained: Σ_left²/n_left + Σ_right²/n_right
    int feature = -1;
    float threshold = 0;
    std::uint64_t choices = 0;
  };

  void draw_rows(Random& random);
  /// False if the node must be a leaf. Writes mean and variance.
  bool summarise(const Range& range, Node& node);
  Split choose_split(const Range& range, Random& random);
  void try_random_number(int feature, const Range& range, Random& random, Split& best);
  struct ChoiceSums;  // of a categorical feature, by choice
  [[nodiscard]] ChoiceSums sums_of_choices(int feature, const Range& range) const;
  void try_random_choices(int feature, const Range& range, Random& random, Split& best) const;
  void try_best_number(int feature, const Range& range, Split& best);
  void try_best_choices(int feature, const Range& range, Split& best);
  [[nodiscard]] const float* column(int feature) const {
    return columns_.data() + static_cast<std::size_t>(feature) * targets_.size();
  }

  const std::vector<char>& categorical_;
  const ForestOptions& options_;
  std::vector<float> columns_;   // column-major copy of the inputs
  std::vector<double> targets_;  // minus their mean
  double offset_;
  int features_;
  int tried_;                             // features per node
  std::vector<std::uint32_t> by_target_;  // rows, the best first
  std::vector<std::uint32_t> rows_;       // of the present tree; a node's lie side by side
  std::vector<float> ys_;                 // their targets
  std::vector<float> values_;             // of one feature in one node
  std::vector<int> feature_order_;
  std::vector<std::pair<float, double>> sorted_;  // of one node and feature
  double total_ = 0.0;                            // of the targets in the present node
};

}  // namespace kolo::search

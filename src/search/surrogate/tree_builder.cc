// A tree is grown depth first over one array of row numbers. A node is a range of that array; a
// split partitions the range in place, and its two halves become the ranges of the children. So a
// tree needs no memory beside the array and its nodes.
//
// Splits are compared by the part of the variance that they explain: with S and n the sum and
// number of the targets on a side, the largest S_left²/n_left + S_right²/n_right has the smallest
// squared error. Targets have their mean subtracted first, so that these squares do not lose
// precision.
#include "search/surrogate/tree_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace kolo::search {
namespace {

// The measure by which splits are compared: larger is better.
double explained(double left_sum, double left_count, double right_sum, double right_count) {
  return left_sum * left_sum / left_count + right_sum * right_sum / right_count;
}

// Four numbers at a time, which every processor can.
using Four = float __attribute__((vector_size(16), may_alias, aligned(4)));
using FourInts = std::int32_t __attribute__((vector_size(16), may_alias));

const Four& four(const float* at) { return *reinterpret_cast<const Four*>(at); }

}  // namespace

struct TreeBuilder::ChoiceSums {
  std::array<double, 64> sum{}, count{};
};

TreeBuilder::TreeBuilder(const Eigen::MatrixXd& inputs, const Eigen::VectorXd& targets,
                         const std::vector<char>& categorical, const ForestOptions& options)
    : categorical_(categorical),
      options_(options),
      columns_(static_cast<std::size_t>(inputs.size())),
      targets_(static_cast<std::size_t>(targets.size())),
      offset_(targets.mean()),
      features_(static_cast<int>(inputs.cols())),
      tried_(
          std::clamp(static_cast<int>(std::ceil(options.max_features * features_)), 1, features_)),
      by_target_(targets_.size()),
      feature_order_(features_) {
  std::transform(inputs.data(), inputs.data() + inputs.size(), columns_.begin(),
                 [](double x) { return static_cast<float>(x); });
  for (std::size_t i = 0; i < targets_.size(); ++i) targets_[i] = targets[i] - offset_;
  std::iota(by_target_.begin(), by_target_.end(), 0U);
  std::stable_sort(by_target_.begin(), by_target_.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return targets_[a] < targets_[b]; });
  std::iota(feature_order_.begin(), feature_order_.end(), 0);
}

void TreeBuilder::draw_rows(Random& random) {
  const std::size_t n = targets_.size();
  const auto wanted = static_cast<std::size_t>(std::llround(options_.max_samples * n));
  const auto most = static_cast<std::size_t>(options_.most_samples);
  const std::size_t size = std::clamp<std::size_t>(wanted, 1, most);
  std::vector<std::uint32_t> rows(size);
  if (options_.bootstrap) {
    for (auto& row : rows) row = static_cast<std::uint32_t>(random.below(n));
  } else if (size >= n) {
    std::iota(rows.begin(), rows.end(), 0U);
  } else {
    // When there are more than a tree may see, every tree sees the best ones, where the optimum is
    // looked for. The others are the first steps of a shuffle.
    const std::size_t best = wanted > most ? size / 2 : 0;
    std::vector<std::uint32_t> pool = by_target_;
    for (std::size_t i = best; i < size; ++i) std::swap(pool[i], pool[i + random.below(n - i)]);
    std::copy_n(pool.begin(), size, rows.begin());
  }
  // In order of memory, which the first levels of the tree then follow.
  std::sort(rows.begin(), rows.end());
  rows_ = std::move(rows);
  ys_.resize(size);
  for (std::size_t i = 0; i < size; ++i) ys_[i] = static_cast<float>(targets_[rows_[i]]);
}

std::int32_t TreeBuilder::build(Random& random, std::vector<Node>& nodes) {
  draw_rows(random);
  const auto root = static_cast<std::int32_t>(nodes.size());
  nodes.emplace_back();
  std::vector<Range> open{{root, 0, static_cast<std::uint32_t>(rows_.size())}};
  while (!open.empty()) {
    const Range range = open.back();
    open.pop_back();
    if (!summarise(range, nodes[range.node])) continue;
    const Split split = choose_split(range, random);
    if (split.feature < 0) continue;
    const float* x = column(split.feature);
    const bool is_categorical = categorical_[split.feature] != 0;
    const auto goes_left = [&](std::uint32_t row) {
      return is_categorical ? ((split.choices >> static_cast<unsigned>(x[row])) & 1U) != 0
                            : x[row] <= split.threshold;
    };
    std::uint32_t cut = range.begin;
    for (std::uint32_t i = range.begin; i < range.end; ++i)
      if (goes_left(rows_[i])) {
        std::swap(rows_[i], rows_[cut]);
        std::swap(ys_[i], ys_[cut++]);
      }
    if (cut == range.begin || cut == range.end) continue;
    const auto left = static_cast<std::int32_t>(nodes.size());
    nodes.resize(nodes.size() + 2);
    Node& node = nodes[range.node];
    node.feature = split.feature;
    node.threshold = split.threshold;
    node.choices = split.choices;
    node.left = left;
    open.push_back({left + 1, cut, range.end});
    open.push_back({left, range.begin, cut});
  }
  return root;
}

// Fills in the node as a leaf, and says whether it can be split: enough rows, and targets that
// differ.
bool TreeBuilder::summarise(const Range& range, Node& node) {
  double sum = 0.0, squares = 0.0;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const double y = ys_[i];
    sum += y;
    squares += y * y;
  }
  const double count = range.end - range.begin;
  const double mean = sum / count;
  node.mean = mean + offset_;
  node.count = static_cast<float>(count);
  node.variance = std::max(0.0, squares / count - mean * mean);
  total_ = sum;
  return static_cast<int>(range.end - range.begin) >= options_.min_samples_split &&
         node.variance > 1e-14 * (1e-300 + squares / count);
}

TreeBuilder::Split TreeBuilder::choose_split(const Range& range, Random& random) {
  Split best;
  int tried = 0;
  // Features in random order until enough of them vary in this node.
  for (int i = 0; i < features_ && tried < tried_; ++i) {
    if (tried_ < features_)
      std::swap(feature_order_[i], feature_order_[i + random.below(features_ - i)]);
    const int feature = feature_order_[i];
    const float* x = column(feature);
    const float first = x[rows_[range.begin]];
    bool varies = false;
    for (std::uint32_t r = range.begin + 1; r < range.end && !varies; ++r)
      varies = x[rows_[r]] != first;
    if (!varies) continue;
    ++tried;
    const bool is_categorical = categorical_[feature] != 0;
    if (options_.split == ForestOptions::Split::random) {
      if (is_categorical)
        try_random_choices(feature, range, random, best);
      else
        try_random_number(feature, range, random, best);
    } else if (is_categorical) {
      try_best_choices(feature, range, best);
    } else {
      try_best_number(feature, range, best);
    }
  }
  return best;
}

// Extremely randomised trees: one threshold, uniform between the smallest and the largest value in
// the node. Both passes over the values work on four of them at a time.
void TreeBuilder::try_random_number(int feature, const Range& range, Random& random, Split& best) {
  const float* x = column(feature);
  const std::uint32_t size = range.end - range.begin;
  const std::uint32_t* rows = rows_.data() + range.begin;
  const float* ys = ys_.data() + range.begin;
  if (values_.size() < size) values_.resize(size);
  float* values = values_.data();
  for (std::uint32_t i = 0; i < size; ++i) values[i] = x[rows[i]];

  const std::uint32_t fours = size / 4 * 4;
  float low = values[0], high = low;
  if (fours > 0) {
    Four lows = four(values), highs = lows;
    for (std::uint32_t i = 4; i < fours; i += 4) {
      const Four here = four(values + i);
      lows = here < lows ? here : lows;
      highs = here > highs ? here : highs;
    }
    for (int lane = 0; lane < 4; ++lane) {
      low = std::min(low, lows[lane]);
      high = std::max(high, highs[lane]);
    }
  }
  for (std::uint32_t i = fours; i < size; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  float threshold = low + static_cast<float>(random.uniform()) * (high - low);
  if (!(threshold < high)) threshold = low;

  Four sums = {0, 0, 0, 0};
  FourInts counts = {0, 0, 0, 0};
  for (std::uint32_t i = 0; i < fours; i += 4) {
    const FourInts is_left = four(values + i) <= threshold;  // all bits or none
    sums += is_left ? four(ys + i) : Four{0, 0, 0, 0};
    counts -= is_left;
  }
  double left_sum =
      (static_cast<double>(sums[0]) + sums[1]) + (static_cast<double>(sums[2]) + sums[3]);
  double left_count = (counts[0] + counts[1]) + (counts[2] + counts[3]);
  for (std::uint32_t i = fours; i < size; ++i)
    if (values[i] <= threshold) {
      left_sum += ys[i];
      left_count += 1.0;
    }
  const double score = explained(left_sum, left_count, total_ - left_sum, size - left_count);
  if (best.feature < 0 || score > best.score) best = {score, feature, threshold, 0};
}

TreeBuilder::ChoiceSums TreeBuilder::sums_of_choices(int feature, const Range& range) const {
  const float* x = column(feature);
  ChoiceSums sums;
  for (std::uint32_t i = range.begin; i < range.end; ++i) {
    const auto choice = static_cast<unsigned>(x[rows_[i]]);
    sums.sum[choice] += ys_[i];
    sums.count[choice] += 1.0;
  }
  return sums;
}

void TreeBuilder::try_random_choices(int feature, const Range& range, Random& random,
                                     Split& best) const {
  const ChoiceSums sums = sums_of_choices(feature, range);
  // Choices that are not here go left or right at random too: nothing is known about them.
  std::uint64_t set = random.next();
  double left_sum = 0.0, left_count = 0.0;
  unsigned some_present = 0;
  for (unsigned c = 0; c < 64; ++c) {
    if (sums.count[c] == 0.0) continue;
    some_present = c;
    if (((set >> c) & 1U) == 0) continue;
    left_sum += sums.sum[c];
    left_count += sums.count[c];
  }
  const double count = range.end - range.begin;
  if (left_count == 0.0 || left_count == count) {  // one side is empty: move one choice over
    const std::uint64_t bit = std::uint64_t{1} << some_present;
    const double sign = left_count == 0.0 ? 1.0 : -1.0;
    set ^= bit;
    left_sum += sign * sums.sum[some_present];
    left_count += sign * sums.count[some_present];
  }
  const double score = explained(left_sum, left_count, total_ - left_sum, count - left_count);
  if (best.feature < 0 || score > best.score) best = {score, feature, 0.0F, set};
}

// Random forests: sorts the values and tries each threshold between two different neighbours.
void TreeBuilder::try_best_number(int feature, const Range& range, Split& best) {
  const float* x = column(feature);
  sorted_.clear();
  for (std::uint32_t i = range.begin; i < range.end; ++i) sorted_.emplace_back(x[rows_[i]], ys_[i]);
  std::sort(sorted_.begin(), sorted_.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  const double count = static_cast<double>(sorted_.size());
  double left_sum = 0.0;
  for (std::size_t i = 0; i + 1 < sorted_.size(); ++i) {
    left_sum += sorted_[i].second;
    if (sorted_[i].first == sorted_[i + 1].first) continue;
    const double left_count = static_cast<double>(i + 1);
    const double score = explained(left_sum, left_count, total_ - left_sum, count - left_count);
    if (best.feature < 0 || score > best.score)
      best = {score, feature, 0.5F * (sorted_[i].first + sorted_[i + 1].first), 0};
  }
}

// Of all ways to divide n choices into two sets, the best one is among the n - 1 cuts of the
// choices sorted by their mean target (Fisher, 1958).
void TreeBuilder::try_best_choices(int feature, const Range& range, Split& best) {
  const ChoiceSums sums = sums_of_choices(feature, range);
  std::array<unsigned, 64> order{};
  unsigned present = 0;
  for (unsigned c = 0; c < 64; ++c)
    if (sums.count[c] > 0.0) order[present++] = c;
  std::sort(order.begin(), order.begin() + present, [&](unsigned a, unsigned b) {
    return sums.sum[a] * sums.count[b] < sums.sum[b] * sums.count[a];
  });
  const double count = range.end - range.begin;
  double left_sum = 0.0, left_count = 0.0;
  std::uint64_t set = 0;
  for (unsigned i = 0; i + 1 < present; ++i) {
    set |= std::uint64_t{1} << order[i];
    left_sum += sums.sum[order[i]];
    left_count += sums.count[order[i]];
    const double score = explained(left_sum, left_count, total_ - left_sum, count - left_count);
    if (best.feature < 0 || score > best.score) best = {score, feature, 0.0F, set};
  }
}

}  // namespace kolo::search

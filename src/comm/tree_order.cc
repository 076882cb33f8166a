// reduce_tree() passes over the elements in chunks that stay in the first-level cache together with
// the sums under way, so each block is read once and each output written once.
#include "comm/tree_order.h"

#include <algorithm>
#include <array>

#include "base/errors.h"
#include "base/hash.h"
#include "comm/reduce_kernels.h"

namespace kolo::comm {
namespace {

constexpr std::size_t kTreeChunkBytes = 8192;

/// Leaves first … end - 1.
struct Node {
  int first, end;
};

/// Where a node splits.
int middle_of(const Node& node) {
  int left = 1;
  while (2 * left < node.end - node.first) left *= 2;
  return node.first + left;
}

/// Whether the two are the halves of one node of the tree.
bool are_siblings(int leaves, const Node& left, const Node& right) {
  Node node{0, leaves};
  while (node.end - node.first > 1) {
    const int middle = middle_of(node);
    if (node.first == left.first && node.end == right.end)
      return middle == left.end && middle == right.first;
    if (right.end <= middle)
      node.end = middle;
    else if (left.first >= middle)
      node.first = middle;
    else
      return false;
  }
  return false;
}

/// The nodes under way, of which siblings become one.
class Stack {
 public:
  explicit Stack(int leaves) : leaves_(leaves) {}

  /// How many times the upper two were merged.
  int push(const Node& node) {
    nodes_.push_back(node);
    deepest_ = std::max(deepest_, nodes_.size());
    int merges = 0;
    while (nodes_.size() > 1 && are_siblings(leaves_, nodes_.rbegin()[1], nodes_.back())) {
      nodes_.rbegin()[1].end = nodes_.back().end;
      nodes_.pop_back();
      ++merges;
    }
    return merges;
  }
  [[nodiscard]] const std::vector<Node>& nodes() const noexcept { return nodes_; }
  [[nodiscard]] int deepest() const noexcept { return static_cast<int>(deepest_); }

 private:
  int leaves_;
  std::vector<Node> nodes_;
  std::size_t deepest_ = 0;
};

}  // namespace

Fold fold_of(int leaves, std::span<const int> mine) {
  Stack stack(leaves);
  Fold fold;
  for (const int leaf : mine) {
    fold.merges.push_back(stack.push({leaf, leaf + 1}));
    // A leaf that is merged at once is added where it is pushed: it needs no place.
    const auto held = static_cast<int>(stack.nodes().size()) + std::max(fold.merges.back() - 1, 0);
    fold.places = std::max(fold.places, held);
  }
  fold.blocks = static_cast<int>(stack.nodes().size());
  return fold;
}

TreeOrder::TreeOrder(int leaves, const std::vector<std::vector<int>>& leaves_of) : leaves_(leaves) {
  struct Brought {
    Node node;
    int member, block;
  };
  std::vector<Brought> all;
  fingerprint_ = hash_combine(static_cast<std::uint64_t>(leaves), leaves_of.size());
  for (std::size_t m = 0; m < leaves_of.size(); ++m) {
    Stack own(leaves);
    for (const int leaf : leaves_of[m]) {
      own.push({leaf, leaf + 1});
      fingerprint_ = hash_combine(fingerprint_, static_cast<std::uint64_t>(leaf) * 2 + 1);
    }
    fingerprint_ = hash_combine(fingerprint_, 0);
    for (const Node& node : own.nodes())
      all.push_back({node, static_cast<int>(m), static_cast<int>(&node - own.nodes().data())});
    blocks_.push_back(static_cast<int>(own.nodes().size()));
    most_blocks_ = std::max(most_blocks_, blocks_.back());
  }
  std::sort(all.begin(), all.end(),
            [](const Brought& a, const Brought& b) { return a.node.first < b.node.first; });
  Stack stack(leaves);
  for (const Brought& each : all)
    steps_.push_back({each.member, each.block, stack.push(each.node)});
  roots_ = static_cast<int>(stack.nodes().size());
  depth_ = stack.deepest();
}

bool TreeOrder::is_plain(DataType type) const noexcept {
  return steps_.size() == 1 || (steps_.size() == 2 && blocks_.size() == 2 && size_of(type) > 2);
}

void reduce_tree(const TreeOrder& order, std::span<const void* const> inputs,
                 std::span<void* const> outputs, std::size_t count, const Reduction& how) {
  KOLO_CHECK(how.op == ReduceOp::sum && how.prescale == 1.0);
  KOLO_CHECK(inputs.size() == order.steps().size() && !inputs.empty());
  const std::size_t element = size_of(how.type);
  const std::size_t chunk = kTreeChunkBytes / element;
  const Reduction plain{.type = how.type};
  const bool has_one_root = order.roots() == 1;
  // The last addition writes the outputs, except where it has to be rounded before it is scaled.
  const bool is_fused = has_one_root && element > 2;
  static thread_local std::vector<std::byte> sums;
  static thread_local std::vector<const void*> stack;
  static thread_local std::vector<void*> targets;
  sums.resize(static_cast<std::size_t>(order.depth()) * kTreeChunkBytes);
  for (std::size_t start = 0; start < count; start += chunk) {
    const std::size_t length = std::min(chunk, count - start);
    targets.clear();
    for (void* output : outputs)
      targets.push_back(static_cast<std::byte*>(output) + start * element);
    stack.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      stack.push_back(static_cast<const std::byte*>(inputs[i]) + start * element);
      for (int merge = order.steps()[i].merges; merge > 0; --merge) {
        const std::array<const void*, 2> upper{stack.rbegin()[1], stack.back()};
        stack.pop_back();
        if (is_fused && i + 1 == inputs.size() && merge == 1) {
          reduce(upper, targets, length, how);
          break;
        }
        void* const sum = sums.data() + (stack.size() - 1) * kTreeChunkBytes;
        reduce(upper, {&sum, 1}, length, plain);
        stack.back() = sum;
      }
    }
    if (is_fused && inputs.size() > 1) continue;
    for (std::size_t r = 0; r < stack.size(); ++r)
      reduce({&stack[r], 1},
             has_one_root ? std::span<void* const>(targets) : std::span(&targets[r], 1), length,
             how);
  }
}

}  // namespace kolo::comm

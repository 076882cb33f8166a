// Sums in the order of a tree: the same bits whoever brings which leaves.
#include <cstring>
#include <numeric>

#include "comm/deferred.h"
#include "comm/reduce_kernels.h"
#include "comm/tree_allreduce.h"
#include "conformance/conformance.h"
#include "kolo/virtual_ranks.h"

namespace kolo::test {
namespace {

using comm::TreeOrder;

/// a += b
void add(DataType type, std::size_t count, std::byte* a, const std::byte* b) {
  const void* const both[] = {a, b};
  void* const sum = a;
  comm::reduce(both, {&sum, 1}, count, comm::Reduction{.type = type});
}

/// The definition, on leaves first … end - 1.
Bytes sum_of(const std::vector<Bytes>& leaves, DataType type, std::size_t count, int first,
             int end) {
  if (end - first == 1) return leaves[static_cast<std::size_t>(first)];
  int left = 1;
  while (2 * left < end - first) left *= 2;
  Bytes sum = sum_of(leaves, type, count, first, first + left);
  const Bytes right = sum_of(leaves, type, count, first + left, end);
  add(type, count, sum.data(), right.data());
  return sum;
}

/// Leaves that a member has, added to blocks in memory of the communicator.
Buffer<std::byte> blocks_of(Communicator& comm, const std::vector<Bytes>& leaves,
                            const std::vector<int>& mine, DataType type, std::size_t count) {
  const comm::Fold fold = comm::fold_of(static_cast<int>(leaves.size()), mine);
  const std::size_t stride = comm::block_stride(count, type);
  auto memory = comm.allocate<std::byte>(
      std::max<std::size_t>(1, static_cast<std::size_t>(fold.places) * stride));
  std::size_t held = 0;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const Bytes& leaf = leaves[static_cast<std::size_t>(mine[i])];
    if (fold.merges[i] == 0) {
      std::memcpy(memory.data() + held++ * stride, leaf.data(), leaf.size());
      continue;
    }
    add(type, count, memory.data() + (held - 1) * stride, leaf.data());
    for (int merge = 1; merge < fold.merges[i]; ++merge, --held)
      add(type, count, memory.data() + (held - 2) * stride, memory.data() + (held - 1) * stride);
  }
  EXPECT_EQ(held, static_cast<std::size_t>(fold.blocks));
  return memory;
}

class Tree : public Conformance {
 protected:
  void check(const std::vector<std::vector<int>>& leaves_of, int leaf_count, DataType type,
             std::size_t count) {
    std::vector<Bytes> leaves;
    for (int v = 0; v < leaf_count; ++v)
      leaves.push_back(make_values(type, count, 77 + static_cast<std::uint64_t>(v), Range::wild));
    Bytes expected = sum_of(leaves, type, count, 0, leaf_count);
    const double scale = 1.0 / leaf_count;
    {
      const void* const in = expected.data();
      void* const out = expected.data();
      comm::reduce({&in, 1}, {&out, 1}, count, comm::Reduction{.type = type, .postscale = scale});
    }
    const TreeOrder order(leaf_count, leaves_of);
    EXPECT_EQ(order.roots(), 1);
    run([&](Communicator& comm) {
      const auto& mine = leaves_of[static_cast<std::size_t>(comm.rank())];
      auto blocks = blocks_of(comm, leaves, mine, type, count);
      comm::tree_allreduce(comm, blocks.data(), count, type, scale, order);
      EXPECT_EQ(std::memcmp(blocks.data(), expected.data(), expected.size()), 0)
          << "rank " << comm.rank() << ", " << leaf_count << " leaves of " << count << " "
          << to_string(type);
      comm::Deferred deferred(comm);
      if (!deferred.is_possible()) return;
      blocks = blocks_of(comm, leaves, mine, type, count);
      deferred.begin_tree_allreduce(blocks.data(), count, type, scale, order);
      deferred.complete();
      comm.barrier();
      EXPECT_EQ(std::memcmp(blocks.data(), expected.data(), expected.size()), 0) << "deferred";
    });
  }
};

TEST_P(Tree, HasTheBitsOfItsLeaves) {
  for (const int leaves : {size(), 8, 11})
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{3000}}) {
      const VirtualRanks shares(leaves, size());
      std::vector<std::vector<int>> leaves_of;
      for (int r = 0; r < size(); ++r) leaves_of.push_back(shares.of(r));
      for (const DataType type :
           {DataType::float32, DataType::float64, DataType::float16, DataType::bfloat16})
        check(leaves_of, leaves, type, count);
    }
}

TEST_P(Tree, AnyoneMayHaveAnyLeaf) {
  std::vector<std::vector<int>> leaves_of(static_cast<std::size_t>(size()));
  for (int v = 0; v < 13; ++v) leaves_of[static_cast<std::size_t>(v * 5 % size())].push_back(v);
  check(leaves_of, 13, DataType::float32, 100'000);
}

TEST_P(Tree, RefusesDifferentOrders) {
  if (size() == 1) GTEST_SKIP() << "one rank agrees with itself";
  run([&](Communicator& comm) {
    std::vector<std::vector<int>> leaves_of(static_cast<std::size_t>(size()));
    for (int v = 0; v < size(); ++v)
      leaves_of[static_cast<std::size_t>(comm.rank() == 0 ? v : size() - 1 - v)].push_back(v);
    auto blocks = comm.allocate<std::byte>(64);
    expect_error(ErrorCode::invalid_argument, [&] {
      comm::tree_allreduce(comm, blocks.data(), 3, DataType::float32, 1.0,
                           TreeOrder(size(), leaves_of));
    });
  });
}

KOLO_CONFORMANCE(Tree, all_arrangements());

}  // namespace
}  // namespace kolo::test

#include "kolo/virtual_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "comm/tree_order.h"
#include "kolo/error.h"

namespace kolo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.message();
  }
  return "";
}

TEST(VirtualRanks, AreContiguousAndEven) {
  const VirtualRanks three(8, 3);
  EXPECT_THAT(three.of(0), ElementsAre(0, 1, 2));
  EXPECT_THAT(three.of(1), ElementsAre(3, 4, 5));
  EXPECT_THAT(three.of(2), ElementsAre(6, 7));
  for (int count = 1; count <= 20; ++count)
    for (int ranks = 1; ranks <= count; ++ranks) {
      const VirtualRanks shares(count, ranks);
      int next = 0;
      for (int rank = 0; rank < ranks; ++rank) {
        EXPECT_GE(shares.of(rank).size(), static_cast<std::size_t>(count / ranks));
        EXPECT_LE(shares.of(rank).size(), static_cast<std::size_t>(count / ranks + 1));
        for (const int v : shares.of(rank)) {
          EXPECT_EQ(v, next++);
          EXPECT_EQ(shares.owner(v), rank);
        }
      }
      EXPECT_EQ(next, count);
    }
}

TEST(VirtualRanks, RefusesMoreRanks) {
  EXPECT_THAT(error_of([] { VirtualRanks(2, 3); }), HasSubstr("among 3 ranks"));
  EXPECT_THAT(error_of([] { VirtualRanks(0, 1); }), HasSubstr("0 virtual ranks"));
  EXPECT_THAT(error_of([] { static_cast<void>(VirtualRanks(4, 2).of(2)); }), HasSubstr("rank 2"));
  EXPECT_THAT(error_of([] { static_cast<void>(VirtualRanks(4, 2).owner(4)); }),
              HasSubstr("virtual rank 4"));
}

TEST(VirtualRanks, StreamsDiffer) {
  std::set<std::uint64_t> seeds;
  for (int v = 0; v < 16; ++v)
    for (std::uint64_t step = 0; step < 64; ++step) seeds.insert(stream_seed(3, v, step));
  EXPECT_EQ(seeds.size(), 16U * 64U);
  EXPECT_EQ(stream_seed(3, 2, 5), stream_seed(3, 2, 5));
  EXPECT_NE(stream_seed(3, 2, 5), stream_seed(4, 2, 5));
}

TEST(VirtualRanks, CountComesFromTheEnvironment) {
  ASSERT_EQ(::setenv("KOLO_VIRTUAL_RANKS", "6", 1), 0);
  EXPECT_EQ(virtual_rank_count(), 6);
  EXPECT_EQ(virtual_rank_count(4), 4);
  ASSERT_EQ(::setenv("KOLO_VIRTUAL_RANKS", "-1", 1), 0);
  EXPECT_THAT(error_of([] { static_cast<void>(virtual_rank_count()); }), HasSubstr("-1"));
  ASSERT_EQ(::setenv("KOLO_VIRTUAL_RANKS", "six", 1), 0);
  EXPECT_THAT(error_of([] { static_cast<void>(virtual_rank_count()); }), HasSubstr("six"));
  ::unsetenv("KOLO_VIRTUAL_RANKS");
  EXPECT_EQ(virtual_rank_count(), 0);
}

TEST(TreeOrder, FollowsTheLeaves) {
  // (01)(23) | (4)(5) 6: the tree is (0123)((45)6).
  const comm::TreeOrder order(7, {{0, 1, 2, 3}, {4}, {5, 6}});
  std::vector<std::vector<int>> steps;
  for (const auto& step : order.steps()) steps.push_back({step.member, step.block, step.merges});
  EXPECT_THAT(steps, ElementsAre(ElementsAre(0, 0, 0), ElementsAre(1, 0, 0), ElementsAre(2, 0, 1),
                                 ElementsAre(2, 1, 2)));
  EXPECT_EQ(order.roots(), 1);
  EXPECT_EQ(order.most_blocks(), 2);
  const comm::TreeOrder part(8, {{1, 2, 3}, {6, 7}});
  EXPECT_EQ(part.roots(), 3);
}

TEST(TreeOrder, AMemberNeedsFewPlaces) {
  const auto fold = comm::fold_of(8, std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_THAT(fold.merges, ElementsAre(0, 1, 0, 2, 0, 1, 0, 3));
  EXPECT_EQ(fold.places, 3);
  EXPECT_EQ(fold.blocks, 1);
  EXPECT_EQ(comm::fold_of(8, std::vector<int>{3, 4, 5}).blocks, 2);
  EXPECT_EQ(comm::fold_of(8, std::vector<int>{5}).places, 1);
}

}  // namespace
}  // namespace kolo

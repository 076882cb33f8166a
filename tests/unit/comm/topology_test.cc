#include "kolo/topology.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kolo/error.h"

namespace kolo {
namespace {

using testing::ElementsAre;

TEST(Topology, OneRankAlone) {
  Topology alone;
  EXPECT_EQ(alone.rank(), 0);
  EXPECT_EQ(alone.size(), 1);
  EXPECT_EQ(alone.local_rank(), 0);
  EXPECT_EQ(alone.local_size(), 1);
  EXPECT_EQ(alone.cross_rank(), 0);
  EXPECT_EQ(alone.cross_size(), 1);
  EXPECT_EQ(alone.host_count(), 1);
  EXPECT_TRUE(alone.is_homogeneous());
}

TEST(Topology, EqualHosts) {
  Topology t(3, {7, 7, 9, 9});
  EXPECT_EQ(t.local_rank(), 1);
  EXPECT_EQ(t.local_size(), 2);
  EXPECT_EQ(t.cross_rank(), 1);
  EXPECT_EQ(t.cross_size(), 2);
  EXPECT_EQ(t.host_count(), 2);
  EXPECT_TRUE(t.is_homogeneous());
  EXPECT_THAT(t.host_of_rank(), ElementsAre(0, 0, 1, 1));
  EXPECT_THAT(t.ranks_on_host(1), ElementsAre(2, 3));
}

TEST(Topology, UnequalHosts) {
  const std::vector<int> hosts = {0, 0, 0, 1, 1};
  Topology third(2, hosts);
  EXPECT_FALSE(third.is_homogeneous());
  EXPECT_EQ(third.local_rank(), 2);
  EXPECT_EQ(third.local_size(), 3);
  // Only host 0 has a rank with local rank 2.
  EXPECT_EQ(third.cross_rank(), 0);
  EXPECT_EQ(third.cross_size(), 1);
  Topology last(4, hosts);
  EXPECT_EQ(last.local_rank(), 1);
  EXPECT_EQ(last.cross_rank(), 1);
  EXPECT_EQ(last.cross_size(), 2);
}

TEST(Topology, CrossRankSkipsHostsWithoutThatLocalRank) {
  // Host 1 has one rank only: among second ranks, host 2 is number 1.
  Topology t(4, {0, 0, 1, 2, 2});
  EXPECT_EQ(t.local_rank(), 1);
  EXPECT_EQ(t.cross_rank(), 1);
  EXPECT_EQ(t.cross_size(), 2);
}

TEST(Topology, HostsAreNumberedByFirstRank) {
  Topology t(0, {42, -1, 42, 7});
  EXPECT_THAT(t.host_of_rank(), ElementsAre(0, 1, 0, 2));
  EXPECT_EQ(t.host_of(3), 2);
  EXPECT_THAT(t.ranks_on_host(0), ElementsAre(0, 2));
}

TEST(Topology, LocalAndCrossRanksNameEachRankOnce) {
  for (const std::vector<int>& hosts :
       {std::vector<int>{0, 1, 0, 1, 2, 0}, {0, 1, 2, 3}, {0, 0, 0, 0, 0, 1}}) {
    std::set<std::pair<int, int>> seen;
    const int n = static_cast<int>(hosts.size());
    for (int r = 0; r < n; ++r) {
      Topology t(r, hosts);
      EXPECT_LT(t.local_rank(), t.local_size());
      EXPECT_LT(t.cross_rank(), t.cross_size());
      EXPECT_TRUE(seen.emplace(t.local_rank(), t.cross_rank()).second) << "rank " << r;
    }
  }
}

TEST(Topology, SubsetRenumbersRanksAndHosts) {
  Topology t(3, {0, 0, 1, 1, 2});
  Topology s = t.subset({4, 3, 2});
  EXPECT_EQ(s.rank(), 1);
  EXPECT_EQ(s.size(), 3);
  EXPECT_THAT(s.host_of_rank(), ElementsAre(0, 1, 1));
  EXPECT_EQ(s.local_rank(), 0);
  EXPECT_EQ(s.local_size(), 2);
}

void expect_invalid(const std::function<void()>& call) {
  try {
    call();
    FAIL() << "nothing was thrown";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::invalid_argument) << e.what();
  }
}

TEST(Topology, RefusesARankThatIsNotThere) {
  expect_invalid([] { Topology(2, {0, 0}); });
  expect_invalid([] { Topology(-1, {0, 0}); });
  expect_invalid([] { Topology(0, {}); });
  expect_invalid([] { (void)Topology(0, {0, 0, 0}).subset({1, 2}); });
}

}  // namespace
}  // namespace kolo

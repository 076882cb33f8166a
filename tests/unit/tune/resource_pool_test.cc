#include "tune/study/resource_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/errors.h"

namespace kolo::tune {
namespace {

TEST(ResourcePool, GivesOutWhatThereIsAndNoMore) {
  ResourcePool pool({.cpu = 3, .gpu = 2});
  auto first = pool.take({.cpu = 1.5, .gpu = 1});
  auto second = pool.take({.cpu = 1.5, .gpu = 1});
  ASSERT_TRUE(first && second);
  EXPECT_FALSE(pool.take({.cpu = 0.1}));
  EXPECT_THAT(first->devices, testing::ElementsAre(0));
  EXPECT_THAT(second->devices, testing::ElementsAre(1));
  EXPECT_EQ(first->slot, 0);
  EXPECT_EQ(second->slot, 1);
  pool.give_back(*first);
  auto third = pool.take({.cpu = 1, .gpu = 1});
  ASSERT_TRUE(third);
  EXPECT_THAT(third->devices, testing::ElementsAre(0));
  EXPECT_EQ(third->slot, 0);
  EXPECT_EQ(pool.describe(), "2.5/3 CPUs, 2/2 GPUs");
}

TEST(ResourcePool, ATrialOfRanksGrowsAndShrinks) {
  ResourcePool pool({.cpu = 5});
  const Resources rank{.cpu = 2};
  Resources trial = rank;
  trial.ranks = {1, 4};
  auto grant = pool.take(trial);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->ranks, 1);
  EXPECT_EQ(pool.free_for(rank), 1);
  EXPECT_TRUE(pool.grow(*grant, rank));
  EXPECT_FALSE(pool.grow(*grant, rank));
  EXPECT_EQ(pool.describe(), "4/5 CPUs");
  pool.shrink(*grant, rank, 1);
  EXPECT_EQ(pool.describe(), "2/5 CPUs");
  EXPECT_TRUE(pool.grow(*grant, rank));
  pool.give_back(*grant);
  EXPECT_EQ(pool.describe(), "0/5 CPUs");
}

TEST(ResourcePool, AmountsThatCannotBeCountedAreRefused) {
  for (const double amount : {-1.0, 1e300, HUGE_VAL, std::nan("")}) {
    EXPECT_THROW(check_amounts({.cpu = amount}, "a trial"), Error) << amount;
    EXPECT_THROW(check_amounts({.gpu = amount}, "a trial"), Error) << amount;
    EXPECT_THROW(check_amounts({.custom = {{"memory", amount}}}, "a trial"), Error) << amount;
  }
  check_amounts({.cpu = 0.5, .gpu = 8, .custom = {{"memory", 64e9}}}, "a trial");
  EXPECT_EQ(ResourcePool({.cpu = 8}).capacity({.cpu = 1e-300}), 1'000'000);
}

TEST(ResourcePool, SharesOfADeviceGoTogether) {
  ResourcePool pool({.cpu = 10, .gpu = 2});
  auto a = pool.take({.cpu = 1, .gpu = 0.5});
  auto b = pool.take({.cpu = 1, .gpu = 0.5});
  auto whole = pool.take({.cpu = 1, .gpu = 1});
  ASSERT_TRUE(a && b && whole);
  EXPECT_EQ(a->devices, b->devices);
  EXPECT_NE(a->devices, whole->devices);
  EXPECT_FALSE(pool.take({.cpu = 1, .gpu = 0.5}));
}

TEST(ResourcePool, ThirdsAddUpToOne) {
  ResourcePool pool({.cpu = 1});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(pool.take({.cpu = 1.0 / 3}));
  EXPECT_FALSE(pool.take({.cpu = 0.01}));
  EXPECT_EQ(ResourcePool({.cpu = 1}).capacity({.cpu = 1.0 / 3}), 3);
}

TEST(ResourcePool, RefusesTheImpossibleAtOnce) {
  const ResourcePool pool({.cpu = 2, .gpu = 1, .custom = {{"disk", 1}}});
  pool.require_possible({.cpu = 2, .gpu = 1, .custom = {{"disk", 1}}});
  EXPECT_THROW(pool.require_possible({.cpu = 3}), Error);
  EXPECT_THROW(pool.require_possible({.cpu = 1, .gpu = 2}), Error);
  EXPECT_THROW(pool.require_possible({.cpu = 1, .gpu = 0, .custom = {{"tape", 1}}}), Error);
  EXPECT_THROW(pool.require_possible({.cpu = -1}), Error);
}

}  // namespace
}  // namespace kolo::tune

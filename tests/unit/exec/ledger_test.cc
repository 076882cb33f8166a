#include "exec/ledger.h"

#include <gmock/gmock.h>

#include "kolo/error.h"

namespace kolo::exec {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kNothingRuns = [](const Ledger::Key&) { return false; };
constexpr auto kAllRun = [](const Ledger::Key&) { return true; };

TEST(LedgerTest, GivesEachReservationProcessorsOfItsOwn) {
  Ledger ledger({3, 0, {}}, {4, 5, 6});
  EXPECT_FALSE(ledger.reserve({1, 1}, "a", {2, 0, {}}));
  EXPECT_FALSE(ledger.reserve({2, 1}, "b", {1, 0, {}}));
  EXPECT_THAT(ledger.find({1, 1})->holding.processors, ElementsAre(4, 5));
  EXPECT_THAT(ledger.find({2, 1})->holding.processors, ElementsAre(6));
  EXPECT_THAT(ledger.reserve({3, 1}, "c", {1, 0, {}}).value_or(""),
              HasSubstr("wanted: 1 slot; free: 0 slots; a has 2 slots, b has 1 slot"));
}

TEST(LedgerTest, WhatIsGivenBackIsFreeWhenNothingRunsThere) {
  Ledger ledger({1, 0, {}}, {0});
  EXPECT_FALSE(ledger.reserve({1, 1}, "a", {1, 0, {}}));
  ledger.give_back({1, 1});
  EXPECT_EQ(ledger.find({1, 1}), nullptr);
  EXPECT_FALSE(ledger.free_ended(kAllRun));
  EXPECT_TRUE(ledger.reserve({2, 1}, "b", {1, 0, {}}));
  EXPECT_TRUE(ledger.free_ended(kNothingRuns));
  EXPECT_FALSE(ledger.reserve({2, 1}, "b", {1, 0, {}}));
}

TEST(LedgerTest, AnOwnerThatIsGoneGivesBackWhatItHadAndNoMore) {
  Ledger ledger({2, 0, {}}, {0, 1});
  EXPECT_FALSE(ledger.reserve({1, 1}, "a", {1, 0, {}}));
  EXPECT_FALSE(ledger.reserve({2, 1}, "b", {1, 0, {}}));
  ledger.give_back_all(1);
  EXPECT_TRUE(ledger.free_ended(kNothingRuns));
  EXPECT_EQ(ledger.holdings().free.slots, 1);
  ASSERT_EQ(ledger.holdings().held.size(), 1U);
  EXPECT_EQ(ledger.holdings().held[0].owner, "b");
}

TEST(LedgerTest, NamedResourcesAndDevicesAreCounted) {
  Ledger ledger({4, 2, {{"licences", 1}}}, {0, 1, 2, 3});
  EXPECT_FALSE(ledger.reserve({1, 1}, "a", {1, 1, {{"licences", 0.6}}}));
  EXPECT_TRUE(ledger.reserve({1, 2}, "a", {1, 0, {{"licences", 0.6}}}));
  EXPECT_FALSE(ledger.reserve({1, 2}, "a", {1, 1, {{"licences", 0.4}}}));
  EXPECT_THAT(ledger.find({1, 2})->gpus, ElementsAre(1));
  EXPECT_THAT(ledger.reserve({1, 3}, "a", {1, 0, {{"dongles", 1}}}).value_or(""),
              HasSubstr("the host has 4 slots, 2 GPUs, 1 licences"));
}

TEST(LedgerTest, MoreSlotsThanProcessorsAreNotBound) {
  Ledger ledger({4, 0, {}}, {0, 1});
  EXPECT_FALSE(ledger.reserve({1, 1}, "a", {3, 0, {}}));
  EXPECT_THAT(ledger.find({1, 1})->holding.processors, IsEmpty());
}

TEST(LedgerTest, NonsenseIsRefused) {
  Ledger ledger({4, 0, {}}, {0, 1});
  EXPECT_THROW(ledger.reserve({1, 1}, "a", {-1, 0, {}}), Error);
  EXPECT_THROW(ledger.reserve({1, 1}, "a", {0, 0, {{"x", std::nan("")}}}), Error);
  EXPECT_FALSE(ledger.reserve({1, 1}, "a", {1, 0, {}}));
  EXPECT_THROW(ledger.reserve({1, 1}, "a", {1, 0, {}}), Error);
}

}  // namespace
}  // namespace kolo::exec

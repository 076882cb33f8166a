#include "train/elastic/rank_pieces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kolo/error.h"
#include "support/thread_ranks.h"

namespace kolo::train {
namespace {

using Held = std::map<int, std::string>;

std::string piece(int rank, int commit) {
  return std::to_string(rank) + std::string(static_cast<std::size_t>(rank) * 5000, 'x') +
         std::to_string(commit);
}

Held all(int ranks, int commit) {
  Held held;
  for (int rank = 0; rank < ranks; ++rank) held[rank] = piece(rank, commit);
  return held;
}

void commit(RankPieces& pieces, Communicator& group, int number) {
  pieces.hand_over(group, piece(group.rank(), number));
  pieces.keep();
}

class RankPiecesTest : public testing::Test {
 protected:
  test::ThreadRanks ranks{{.host_of_rank = {0, 0, 0, 0}}};
};

TEST_F(RankPiecesTest, AnyOneRankMayBeLost) {
  for (const std::vector<int>& survivors :
       {std::vector{0, 1, 2}, std::vector{1, 2, 3}, std::vector{0, 2, 3}, std::vector{0, 2}})
    ranks.run([&](Communicator& world) {
      RankPieces pieces;
      commit(pieces, world, 1);
      commit(pieces, world, 2);
      EXPECT_EQ(pieces.kept().size(), 2U);
      const auto group = world.subset(survivors);
      if (group == nullptr) return;
      EXPECT_EQ(pieces.gather(*group), all(4, 2));
    });
}

TEST_F(RankPiecesTest, ARankThatComesGetsThemToo) {
  ranks.run([&](Communicator& world) {
    RankPieces pieces;
    if (const auto old = world.subset({0, 1})) commit(pieces, *old, 1);
    EXPECT_EQ(pieces.gather(world), all(2, 1));
    commit(pieces, world, 2);
    EXPECT_EQ(pieces.gather(world), all(4, 2));
  });
}

TEST_F(RankPiecesTest, ACommitThatOneRankHasMadeCountsForAll) {
  ranks.run([&](Communicator& world) {
    RankPieces pieces;
    commit(pieces, world, 1);
    pieces.hand_over(world, piece(world.rank(), 2));
    if (world.rank() == 2) pieces.keep();
    EXPECT_EQ(pieces.gather(world), all(4, 2));
  });
}

TEST_F(RankPiecesTest, ACommitThatNobodyHasMadeCountsForNobody) {
  ranks.run([&](Communicator& world) {
    RankPieces pieces;
    commit(pieces, world, 1);
    pieces.hand_over(world, piece(world.rank(), 2));
    EXPECT_EQ(pieces.gather(world), all(4, 1));
  });
}

TEST_F(RankPiecesTest, NothingIsLeftOfPiecesAfterACommitWithoutAny) {
  ranks.run([&](Communicator& world) {
    RankPieces pieces;
    commit(pieces, world, 1);
    pieces.hand_over_nothing();
    pieces.keep();
    EXPECT_TRUE(pieces.gather(world).empty());
  });
}

TEST_F(RankPiecesTest, TwoThatFollowEachOtherAreTooMany) {
  ranks.run([&](Communicator& world) {
    RankPieces pieces;
    commit(pieces, world, 1);
    const auto group = world.subset({0, 3});
    if (group == nullptr) return;
    try {
      pieces.gather(*group);
      ADD_FAILURE() << "the piece of rank 1 is nowhere";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::unavailable);
      EXPECT_THAT(error.message(), testing::HasSubstr("what only rank 1 had is lost"));
    }
  });
}

}  // namespace
}  // namespace kolo::train

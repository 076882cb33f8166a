#include <gtest/gtest.h>

#include "comm/wire/statements.h"

namespace kolo::comm {
namespace {

TEST(Statements, ASilentSuspectIsToBlame) {
  Statements statements(4, 0);
  EXPECT_EQ(statements.blame(2), 2);
  EXPECT_FALSE(statements.has_spoken(2));
}

TEST(Statements, TheEndOfTheChainIsToBlame) {
  Statements statements(4, 0);
  statements.hear(1, 2);
  statements.hear(2, 3);
  EXPECT_EQ(statements.blame(1), 3);
  EXPECT_TRUE(statements.has_spoken(2));
}

TEST(Statements, AChainThatComesBackBlamesTheSuspect) {
  Statements statements(4, 0);
  statements.hear(1, 0);
  EXPECT_EQ(statements.blame(1), 1);
}

TEST(Statements, ACircleOfOthersBlamesTheSuspect) {
  Statements statements(4, 0);
  statements.hear(1, 2);
  statements.hear(2, 3);
  statements.hear(3, 1);
  EXPECT_EQ(statements.blame(2), 2);
}

TEST(Statements, NonsenseIsIgnored) {
  Statements statements(2, 0);
  statements.hear(1, 7);
  statements.hear(1, -3);
  EXPECT_EQ(statements.blame(1), 1);
}

}  // namespace
}  // namespace kolo::comm

#include "train/trainer/patience.h"

#include <gtest/gtest.h>

#include <cmath>

namespace kolo::train {
namespace {

TEST(Patience, EndsAfterSoManyEpochsWithoutABetterValue) {
  Patience patience(true, 2, 0);
  EXPECT_FALSE(patience.is_over(1.0));
  EXPECT_FALSE(patience.is_over(1.0));
  EXPECT_FALSE(patience.is_over(0.9));  // better: counting begins anew
  EXPECT_FALSE(patience.is_over(0.95));
  EXPECT_TRUE(patience.is_over(0.9));
  EXPECT_FALSE(patience.is_over(0.9));
  EXPECT_TRUE(patience.is_over(0.9));
}

TEST(Patience, NotANumberIsWorst) {
  Patience patience(true, 2, 0);
  EXPECT_FALSE(patience.is_over(std::nan("")));
  EXPECT_FALSE(patience.is_over(5.0));
  EXPECT_FALSE(patience.is_over(4.0));
  EXPECT_FALSE(patience.is_over(std::nan("")));
  EXPECT_TRUE(patience.is_over(std::nan("")));
}

TEST(Patience, UpwardWithALeastGain) {
  Patience patience(false, 1, 0.1);
  EXPECT_FALSE(patience.is_over(0.5));
  EXPECT_FALSE(patience.is_over(0.7));
  EXPECT_TRUE(patience.is_over(0.75));
  EXPECT_FALSE(patience.is_over(0.81));
}

TEST(Patience, NoPatienceEndsAtTheFirstEpochThatIsNotBetter) {
  Patience patience(true, 0, 0);
  EXPECT_FALSE(patience.is_over(2));
  EXPECT_FALSE(patience.is_over(1));
  EXPECT_TRUE(patience.is_over(1));
}

}  // namespace
}  // namespace kolo::train

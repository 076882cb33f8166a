#include "nas/problem/objective.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kolo/error.h"

namespace kolo::nas {
namespace {

const History kHistory{{"val_r2", {0.1, 0.9, 0.5}}, {"val_loss", {3, 1, 2}}};

TEST(Objective, TakesTheLastEpochUnlessToldOtherwise) {
  EXPECT_EQ(Objective::parse("val_r2").value_in(kHistory), 0.5);
  EXPECT_EQ(Objective::parse("val_r2__max").value_in(kHistory), 0.9);
  EXPECT_EQ(Objective::parse("-val_loss__min").value_in(kHistory), -1);
  EXPECT_EQ(Objective::parse("-val_loss").value_in(kHistory), -2);
  EXPECT_TRUE(Objective::parse("val_acc__last").last_epoch_only);
  EXPECT_FALSE(Objective::parse("val_acc").last_epoch_only);
}

TEST(Objective, NamesWhatIsMissing) {
  EXPECT_THROW((void)Objective::parse(""), Error);
  EXPECT_THROW((void)Objective::parse("-val_"), Error);
  EXPECT_THROW((void)Objective::parse("val_r2__best"), Error);
  try {
    (void)Objective::parse("val_acc").value_in(kHistory);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_found);
    EXPECT_NE(error.message().find("val_loss, val_r2"), std::string::npos);
  }
}

TEST(Objective, IsNotANumberOnceTrainingWentWrong) {
  const History broken{{"loss", {1, std::numeric_limits<double>::quiet_NaN(), 2}}, {"none", {}}};
  EXPECT_TRUE(std::isnan(Objective::parse("loss__min").value_in(broken)));
  EXPECT_TRUE(std::isnan(Objective::parse("none").value_in(broken)));
}

}  // namespace
}  // namespace kolo::nas

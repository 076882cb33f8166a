// One field of all trials.
#include "dashboard/column.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kolo::dashboard {
namespace {

TEST(Column, KeepsWhatCellsReferTo) {
  Column column;
  for (int round = 0; round < 10'000; ++round)
    for (std::size_t row = 0; row < 3; ++row)
      column.set(row, fmt::format("step {} of {}", round, row % 2));
  EXPECT_EQ(column.others(), 2U);
  EXPECT_EQ(column.at(0).as_string(), "step 9999 of 0");
  EXPECT_EQ(column.at(1).as_string(), "step 9999 of 1");
  column.set(0, 7);
  column.set(1, "last");
  EXPECT_EQ(column.others(), 2U);
  EXPECT_EQ(column.at(0).as_integer(), 7);
  EXPECT_EQ(column.at(1).as_string(), "last");
  EXPECT_EQ(column.at(2).as_string(), "step 9999 of 0");
  column.set(1, {});
  column.set(2, 8);
  EXPECT_TRUE(column.has_numbers_alone());
  std::vector<std::uint32_t> rows{2, 1, 0};
  column.sort(rows, /*descending=*/false, 3);
  EXPECT_EQ(rows, (std::vector<std::uint32_t>{0, 2, 1}));
}

TEST(Column, CutsLongTexts) {
  Column column;
  column.set(0, std::string(1'000'000, 'x'));
  EXPECT_LT(column.at(0).as_string().size(), 10'000U);
  column.set(0, search::Value(search::Value::List(100'000, search::Value("a"))));
  EXPECT_LT(column.at(0).as_string().size(), 10'000U);
  EXPECT_EQ(column.others(), 1U);
}

}  // namespace
}  // namespace kolo::dashboard

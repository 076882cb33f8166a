#include "tune/output/packed_column.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tune/output/chosen_trials.h"

namespace kolo::tune {
namespace {

TEST(PackedColumn, OneValueStandsOnce) {
  EXPECT_EQ(packed_column(std::vector<Json>(1000, "TERMINATED")), (Json{{"of", {"TERMINATED"}}}));
}

TEST(PackedColumn, FewValuesAreNumbered) {
  const std::vector<Json> values = {"adam", nullptr, "sgd", "adam"};
  EXPECT_EQ(packed_column(values), (Json{{"of", {"adam", nullptr, "sgd"}}, {"u1", "AAECAA=="}}));
}

// As JSON these are equal, but a page shows them as they are.
TEST(PackedColumn, ValuesOfDifferentTypesStayApart) {
  const std::vector<Json> values = {true, 1, 1.5, "1"};
  EXPECT_EQ(packed_column(values).at("of"), Json(values));
}

std::vector<Json> numbers(double factor, double offset = 0) {
  std::vector<Json> values;
  for (int i = 0; i < 300; ++i) values.emplace_back(factor * i + offset);
  return values;
}

TEST(PackedColumn, NumbersTakeFourBytesUnlessTheyNeedEight) {
  EXPECT_EQ(packed_column(numbers(0.001)).at("f4").get<std::string>().size(), 1600U);
  EXPECT_TRUE(packed_column(numbers(1)).contains("f4"));
  EXPECT_TRUE(packed_column(numbers(1, 1 << 25)).contains("f8"));
  EXPECT_TRUE(packed_column(numbers(1e300, 0.5)).contains("f8"));
  EXPECT_TRUE(packed_column(numbers(1e-310, 1e-310)).contains("f8"));
}

TEST(PackedColumn, ManyNamesTakeTwoBytesAndVeryManyAreListed) {
  std::vector<Json> names;
  for (int i = 0; i < 1000; ++i) names.emplace_back("name " + std::to_string(i));
  EXPECT_EQ(packed_column(names).at("of").size(), 1000U);
  EXPECT_TRUE(packed_column(names).contains("u2"));
  for (int i = 1000; i < 70'000; ++i) names.emplace_back("name " + std::to_string(i));
  EXPECT_EQ(packed_column(names), Json(names));
}

TEST(ChosenTrials, TheBestAndSomeOthers) {
  std::vector<double> badness(1000, std::nan(""));
  for (std::size_t i = 500; i < 1000; ++i) badness[i] = static_cast<double>(i);
  const auto chosen = chosen_trials(badness, 100);
  ASSERT_EQ(chosen.size(), 100U);
  EXPECT_TRUE(std::is_sorted(chosen.begin(), chosen.end()));
  for (std::int64_t best = 500; best < 550; ++best)
    EXPECT_TRUE(std::binary_search(chosen.begin(), chosen.end(), best)) << best;
  EXPECT_LT(chosen.front(), 500);  // those without a value are among the others
  EXPECT_EQ(chosen_trials(badness, 1000).size(), 1000U);
  EXPECT_TRUE(chosen_trials({}, 10).empty());
}

}  // namespace
}  // namespace kolo::tune

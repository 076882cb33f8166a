#include "base/text_table.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace kolo {
namespace {

TEST(TextTableTest, ColumnsAreAsWideAsTheirWidestCell) {
  EXPECT_EQ(text_table({{"name", "loss"}, {"a", "0.5"}, {"longer", ""}}),
            "name    loss\na       0.5\nlonger\n");
  EXPECT_EQ(text_table({}), "");
}

TEST(TextTableTest, LettersCountNotBytes) {
  EXPECT_EQ(text_table({{"é", "x"}, {"ab", "y"}}), "é   x\nab  y\n");
  EXPECT_EQ(letters_of("1 ± X"), 5U);
}

TEST(TextTableTest, ControlCharactersAreBlanks) {
  EXPECT_EQ(text_table({{"a\x1b[31m", "b\nc"},
                        {"\xC2\x9B"
                         "2J",
                         "é\x7f\r"}}),
            "a [31m  b c\n 2J     é\n");
  EXPECT_EQ(printable_lines("one\n\ttwo\x1b]0;t\x07"), "one\n\ttwo ]0;t ");
  EXPECT_EQ(printable("one\ntwo \xC3\xA9"), "one two é");
}

TEST(TextTableTest, LinesAreCutAndIndented) {
  EXPECT_EQ(text_table({{"abc", "déf"}}, {.width = 7}), "abc  d…\n");
  EXPECT_EQ(text_table({{"abc"}}, {.width = 4, .indent = 2}), "  a…\n");
}

TEST(TextTableTest, NumbersHaveFiveDigits) {
  EXPECT_EQ(short_number(0.123456789), "0.12346");
  EXPECT_EQ(short_number(3), "3");
  EXPECT_EQ(short_number(1234567), "1.2346e+06");
}

}  // namespace
}  // namespace kolo

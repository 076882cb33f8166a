// Comma-separated values and markup.
#include <gmock/gmock.h>

#include "base/csv.h"
#include "base/markup.h"
#include "base/utf8.h"
#include "kolo/error.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;

TEST(Utf8Test, KnowsWhatIsWellFormed) {
  for (const char* good :
       {"", "plain text of more than eight bytes", "\x7F", "\xC2\x80", "\xDF\xBF", "\xE0\xA0\x80",
        "\xED\x9F\xBF", "\xEE\x80\x80", "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF",
        "sedm slov: č š ž € 𝄞"})
    EXPECT_TRUE(is_plain_utf8(good)) << good;
  for (const char* bad :
       {"\xFF", "\x80", "\xC0\x80", "\xC1\xBF", "\xC2", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xF0\x90\x80",
        "eight ascii bytes before \xFE", "\xC2x"})
    EXPECT_FALSE(is_plain_utf8(bad)) << bad;
  EXPECT_FALSE(is_plain_utf8({"0123456\0", 8}));
  EXPECT_FALSE(is_plain_utf8({"\0", 1}));
}

TEST(Utf8Test, ReplacesOnlyWhatIsNot) {
  EXPECT_EQ(plain_utf8("a\xFF\xC4\x8D\xC4"), "a\uFFFD\u010D\uFFFD");
  EXPECT_EQ(plain_utf8({"a\0b", 3}), "a\uFFFDb");
  EXPECT_THROW(require_plain_utf8("\xFF", "a name"), Error);
}

TEST(CsvTest, QuotesOnlyWhatNeedsIt) {
  EXPECT_EQ(csv_quoted("plain text"), "plain text");
  EXPECT_EQ(csv_quoted("a,b"), "\"a,b\"");
  EXPECT_EQ(csv_quoted("say \"no\""), "\"say \"\"no\"\"\"");
  EXPECT_EQ(csv_quoted("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(csv_quoted(""), "");
}

TEST(CsvTest, ReadsWhatItWrites) {
  const std::vector<std::string> fields{"", "a,b", "\"", "x", "1.5", ""};
  const std::string line = csv_line(fields);
  ASSERT_EQ(line.back(), '\n');
  EXPECT_EQ(split_csv_line(line.substr(0, line.size() - 1)), fields);
  EXPECT_EQ(csv_line({}), "\n");
}

TEST(CsvTest, LinesEndOutsideOfQuotes) {
  EXPECT_THAT(csv_lines("a,b\n\"two\nlines\",2\n3"), ElementsAre("a,b", "\"two\nlines\",2", "3"));
  EXPECT_THAT(csv_lines(""), ElementsAre());
  // A quote inside of a field that has none at its beginning is a letter, as for split_csv_line().
  EXPECT_THAT(csv_lines("5\" disk,1\nb,\"\"\"\n\",2\n"),
              ElementsAre("5\" disk,1", "b,\"\"\"\n\",2"));
  EXPECT_EQ(whole_csv_lines("a,b\n\"1\n\",2\n\"[1,\n 2"), "a,b\n\"1\n\",2\n");
  EXPECT_EQ(whole_csv_lines("torn"), "");
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB\xBFx"), "x");
}

TEST(CsvTest, AnOpenQuoteIsAnError) {
  try {
    split_csv_line("1,\"2");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  }
}

TEST(MarkupTest, EscapesWhatWouldEndTextOrAttributes) {
  EXPECT_EQ(markup_escaped("<a & \"b\">'c'"), "&lt;a &amp; &quot;b&quot;&gt;&#39;c&#39;");
  EXPECT_EQ(markup_escaped("a\tb\nc\x01"), "a\tb\nc ");
}

}  // namespace
}  // namespace kolo

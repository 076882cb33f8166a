// Comma-separated values and markup.
#include <gmock/gmock.h>

#include "base/csv.h"
#include "base/markup.h"
#include "kolo/error.h"

namespace kolo {
namespace {

using ::testing::ElementsAre;

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

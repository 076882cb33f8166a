#include "base/words.h"

#include <gmock/gmock.h>

#include "base/errors.h"

namespace kolo {
namespace {

using testing::ElementsAre;

TEST(Words, AreSplitAsAShellDoesAndNothingIsExpanded) {
  EXPECT_THAT(split_words("  a  'b c' \"d 'e'\" f\\ g ''", "x"),
              ElementsAre("a", "b c", "d 'e'", "f g", ""));
  EXPECT_THAT(split_words("$HOME $(ls) `x` *; a|b \"$x\\$y\\n\"", "x"),
              ElementsAre("$HOME", "$(ls)", "`x`", "*;", "a|b", "$x$y\\n"));
  EXPECT_THAT(split_words("a'b'\"c\"d\n\te", "x"), ElementsAre("abcd", "e"));
  EXPECT_TRUE(split_words("", "x").empty());
  EXPECT_THROW(split_words("'a", "x"), Error);
  EXPECT_THROW(split_words("a \"b", "x"), Error);
}

TEST(Words, AreQuotedSoThatTheyComeBack) {
  for (const char* word : {"plain", "", "a b", "it's", "$(x)", "a\nb", "\"\\"})
    EXPECT_THAT(split_words(shell_quoted(word), "x"), ElementsAre(word));
}

}  // namespace
}  // namespace kolo

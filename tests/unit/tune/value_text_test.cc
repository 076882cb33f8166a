#include "tune/protocol/value_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/errors.h"
#include "base/json.h"

namespace kolo::tune {
namespace {

using search::Value;

TEST(ValueText, GivesBackWhatWasEncoded) {
  const Value values[] = {Value(),
                          Value(true),
                          Value(7),
                          Value(-0.1),
                          Value(1e300),
                          Value("a \"b\"\n\x01 č"),
                          Value(Value::List{Value(1), Value("x")}),
                          Value(Value::Dict{}),
                          Value{{"loss", 0.3}, {"eval", {{"acc", 1.0}, {"n", 3}}}}};
  for (const Value& value : values) {
    const Value again = decode(encode(value), "here");
    EXPECT_EQ(again, value) << encode(value);
    EXPECT_EQ(again.to_string(), value.to_string());  // whole numbers and others kept apart
  }
}

TEST(ValueText, KeepsNumbersThatJsonDoesNotHave) {
  const double infinite = std::numeric_limits<double>::infinity();
  const Value again = decode(
      encode(Value{{"a", std::nan("")}, {"b", infinite}, {"c", Value::List{Value(-infinite)}}}),
      "");
  EXPECT_TRUE(std::isnan(again.at_path("a").as_number()));
  EXPECT_EQ(again.at_path("b").as_number(), infinite);
  EXPECT_EQ(again.at_path("c/0").as_number(), -infinite);
}

TEST(ValueText, ATextThatReadsLikeSuchANumberStaysAText) {
  for (const std::string text : {"NaN", "Infinity", "-Infinity", "\\NaN", "\\\\-Infinity", "nan"}) {
    const Value again = decode(encode(Value{{"name", text}, {"list", Value::List{text}}}), "");
    EXPECT_EQ(again.at_path("name"), Value(text));
    EXPECT_EQ(again.at_path("list/0"), Value(text));
  }
}

TEST(ValueText, WritesNothingThatItsReaderRefuses) {
  const std::pair<std::string, std::string> texts[] = {
      {"caf\xe9", "caf\uFFFD"}, {"\xff\xfe", "\uFFFD\uFFFD"}, {"ok č\x80", "ok č\uFFFD"}};
  for (const auto& [text, read] : texts) {
    const Value again = decode(encode(Value{{text, text}}), "");
    EXPECT_EQ(again, (Value{{read, read}}));
  }
}

TEST(ValueText, WritesNothingThatIsTooDeepToBeRead) {
  Value value = 1;
  for (int depth = 0; depth < kDeepestJson; ++depth) value = Value(Value::List{std::move(value)});
  EXPECT_EQ(decode(encode(value), ""), value);
  EXPECT_THROW(require_shallow(value, "a report"), Error);
  EXPECT_THROW(encode(Value{{"one more", value}}), Error);
}

TEST(ValueText, PointsComeBackBitForBit) {
  const search::Point point{0.1, -1e-17, 3, std::nan(""), 5e-324, 1.0 / 3};
  EXPECT_TRUE(search::same_point(decode_point(encode_point(point)), point));
  EXPECT_EQ(encode_point({}), "");
  EXPECT_TRUE(decode_point("").empty());
  EXPECT_THROW(decode_point("1,x"), Error);
}

TEST(ValueText, FlattensDictionaries) {
  const auto flat = flatten(Value{{"a", 1}, {"b", {{"c", 2}, {"d", {{"e", 3}}}}}});
  EXPECT_EQ(flat.size(), 3U);
  EXPECT_EQ(flat.at("b/d/e").as_integer(), 3);
}

TEST(ValueText, ReadsNumbersAsPythonWritesThem) {
  const Value value =
      decode(R"({"a": NaN, "b": [Infinity, -Infinity], "c": "NaN \" Infinity"})", "t");
  EXPECT_TRUE(std::isnan(value.at_path("a").as_number()));
  EXPECT_EQ(value.at_path("b").as_list()[1].as_number(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(value.at_path("c").as_string(), "NaN \" Infinity");
  EXPECT_THROW(decode("{\"a\": Nan}", "t"), Error);
}

}  // namespace
}  // namespace kolo::tune

#include "base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "kolo/error.h"

namespace kolo {
namespace {

using testing::StartsWith;

template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "no exception");
}

TEST(Json, ParsesAValue) { EXPECT_EQ(parse_json(R"({"a": [1, 2.5, null]})", "x")["a"][1], 2.5); }

TEST(Json, ErrorSaysWhere) {
  Error error = error_of([] { (void)parse_json("{\n  \"a\": 1,\n  \"b\" 2\n}", "study.json"); });
  EXPECT_EQ(error.code(), ErrorCode::corruption);
  EXPECT_THAT(error.message(), StartsWith("study.json:3:7: not valid JSON: "));
}

TEST(Json, NumbersOutOfRangeAreErrors) {
  const Error error = error_of([] { (void)parse_json("{\"loss\": 1e999}", "x"); });
  EXPECT_EQ(error.code(), ErrorCode::corruption);
  EXPECT_FALSE(try_parse_json("1e999"));
}

TEST(Json, NestingHasALimit) {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '[') +
           std::string(static_cast<std::size_t>(depth), ']');
  };
  EXPECT_NO_THROW((void)parse_json(nested(kDeepestJson), "x"));
  const Error error = error_of([&] { (void)parse_json(nested(kDeepestJson + 1), "x"); });
  EXPECT_EQ(error.message(), "x:1:201: not valid JSON: it is nested more than 200 deep");
  EXPECT_FALSE(try_parse_json(nested(200'000)));
  // Brackets in strings do not count, nor do quotes behind backslashes end them.
  EXPECT_TRUE(try_parse_json("[\"\\\"" + std::string(1000, '[') + "\"]"));
}

TEST(Json, TextOfBytesThatAreNotUtf8) {
  EXPECT_EQ(json_text(Json{{"a", "x\377y"}}), "{\"a\":\"x\xEF\xBF\xBDy\"}");
}

TEST(Json, EmptyTextIsAnError) {
  EXPECT_THAT(error_of([] { (void)parse_json("", "x"); }).message(), StartsWith("x:1:1: "));
}

TEST(Json, FieldOfTheRightType) {
  Json object = {{"count", 3}, {"name", "n"}};
  EXPECT_EQ(json_field<int>(object, "count", "trial 7"), 3);
  EXPECT_EQ(json_field<std::string>(object, "name", "trial 7"), "n");
}

TEST(Json, FieldErrorsNameTheField) {
  Json object = {{"count", "three"}};
  Error wrong = error_of([&] { (void)json_field<int>(object, "count", "trial 7"); });
  EXPECT_EQ(wrong.code(), ErrorCode::invalid_argument);
  EXPECT_EQ(wrong.message(), "trial 7: 'count' has the wrong type (string)");
  Error missing = error_of([&] { (void)json_field<int>(object, "size", "trial 7"); });
  EXPECT_EQ(missing.message(), "trial 7: 'size' is missing");
  Error outside = error_of([&] { (void)json_field<int>(Json(1), "size", "trial 7"); });
  EXPECT_EQ(outside.message(), "trial 7: 'size' is not inside an object");
}

TEST(Json, WholeNumbersAreNeitherCutNorWrapped) {
  EXPECT_EQ(whole_number<int>(Json(3)), 3);
  EXPECT_EQ(whole_number<int>(Json(-3.0)), -3);
  EXPECT_EQ(whole_number<std::uint64_t>(Json(UINT64_MAX)), UINT64_MAX);
  EXPECT_EQ(whole_number<std::int64_t>(Json(-9223372036854775808.0)), INT64_MIN);
  for (const Json& other : {Json(2.5), Json(1e300), Json(-1e300), Json(9223372036854775808.0),
                            Json(NAN), Json(4294967297), Json(UINT64_MAX), Json(true), Json("3")})
    EXPECT_FALSE(whole_number<int>(other)) << other;
  EXPECT_FALSE(whole_number<std::int64_t>(Json(9223372036854775808.0)));
  EXPECT_FALSE(whole_number<std::size_t>(Json(-1)));
}

TEST(Json, FieldsThatAreNumbersMustFit) {
  const Json object = {{"huge", 1e300}, {"wide", 4294967297}, {"part", 2.5}, {"flag", true}};
  const auto message = [&](const char* key) {
    return error_of([&] { (void)json_field<int>(object, key, "trial 7"); }).message();
  };
  EXPECT_EQ(message("huge"), "trial 7: 'huge' must be a number of a usual size, not 1e+300");
  EXPECT_EQ(message("wide"), "trial 7: 'wide' must be a number of a usual size, not 4294967297");
  EXPECT_EQ(message("part"), "trial 7: 'part' must be a whole number, not 2.5");
  EXPECT_EQ(message("flag"), "trial 7: 'flag' has the wrong type (boolean)");
  EXPECT_EQ(json_field<std::int64_t>(object, "wide", "trial 7"), 4294967297);
  EXPECT_TRUE(json_field<bool>(object, "flag", "trial 7"));
}

}  // namespace
}  // namespace kolo

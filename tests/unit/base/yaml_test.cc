#include "base/yaml.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "kolo/error.h"

namespace kolo {
namespace {

using testing::HasSubstr;

template <class Action>
Error error_of(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::internal, "no exception");
}

TEST(Yaml, IsUtf8) {
  for (const std::string text : {"\377", "a: \377", "# \303", "\376\377\000a"})
    EXPECT_EQ(error_of([&] { (void)parse_yaml(text, "f.yaml"); }).message(),
              "f.yaml: not valid YAML: it is not UTF-8 text, or has zero bytes");
  EXPECT_EQ(parse_yaml("a: č", "f.yaml")["a"], "č");
}

TEST(Yaml, EveryTextHasAnEnd) {
  for (const char* text : {",", ",,s: [1]", "]", "}", "- ]", "a: ,"})
    EXPECT_EQ(error_of([&] { (void)parse_yaml(text, "f.yaml"); }).code(),
              ErrorCode::invalid_argument)
        << text;
}

TEST(Yaml, ScalarsKeepTheirKind) {
  Json value = parse_yaml(
      "a: 1\nb: -2.5\nc: true\nd: text\ne: '1'\nf: ~\ng: 18446744073709551615\nh: 1e3\n"
      "i: 10.0.0.1\nj: nan\nk: yes\nl: \"true\"\nm: +7\nn: 2024-01-02\no:\n",
      "x");
  EXPECT_EQ(value["a"], 1);
  EXPECT_TRUE(value["a"].is_number_integer());
  EXPECT_EQ(value["b"], -2.5);
  EXPECT_EQ(value["c"], true);
  EXPECT_EQ(value["d"], "text");
  EXPECT_EQ(value["e"], "1");
  EXPECT_TRUE(value["f"].is_null());
  EXPECT_EQ(value["g"], UINT64_MAX);
  EXPECT_EQ(value["h"], 1000.0);
  EXPECT_EQ(value["i"], "10.0.0.1");
  EXPECT_EQ(value["j"], "nan");
  EXPECT_EQ(value["k"], "yes");
  EXPECT_EQ(value["l"], "true");
  EXPECT_EQ(value["m"], 7);
  EXPECT_EQ(value["n"], "2024-01-02");
  EXPECT_TRUE(value["o"].is_null());
}

TEST(Yaml, NestsAndFollowsAliases) {
  Json value = parse_yaml("base: &b {x: [1, 2]}\ncopy: *b\n", "x");
  EXPECT_EQ(value["copy"]["x"], Json::array({1, 2}));
}

TEST(Yaml, EmptyDocumentIsNull) {
  EXPECT_TRUE(parse_yaml("", "x").is_null());
  EXPECT_TRUE(parse_yaml("# only a comment\n", "x").is_null());
}

TEST(Yaml, SyntaxErrorNamesFileAndLine) {
  Error error = error_of([] { (void)parse_yaml("a: 1\nb: [1, 2\nc: 3\n", "run.yaml"); });
  EXPECT_EQ(error.code(), ErrorCode::invalid_argument);
  EXPECT_THAT(error.message(), testing::MatchesRegex("run.yaml:[23]: not valid YAML: .*"));
}

TEST(Yaml, RepeatedKeyIsAnErrorAtItsLine) {
  Error error = error_of([] { (void)parse_yaml("a: 1\nb: 2\na: 3\n", "run.yaml"); });
  EXPECT_EQ(error.message(), "run.yaml:3: key 'a' is repeated");
}

TEST(Yaml, KeysMustBePlain) {
  EXPECT_EQ(error_of([] { (void)parse_yaml("a: 1\n[1, 2]: x\n", "f"); }).message(),
            "f:2: a key must be plain text");
}

TEST(Yaml, SeveralDocumentsAreAnError) {
  EXPECT_THAT(error_of([] { (void)parse_yaml("a: 1\n---\nb: 2\n", "f"); }).message(),
              HasSubstr("several YAML documents"));
}

TEST(Yaml, AliasBombIsRefused) {
  std::string bomb = "l0: &l0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    std::string above = std::to_string(i - 1), here = std::to_string(i);
    bomb += "l" + here + ": &l" + here + " [";
    for (int k = 0; k < 10; ++k) bomb += (k == 0 ? "*l" : ", *l") + above;
    bomb += "]\n";
  }
  EXPECT_THAT(error_of([&] { (void)parse_yaml(bomb, "f"); }).message(), HasSubstr("too large"));
}

TEST(Yaml, LoadsAFileAndSaysWhichOneIsMissing) {
  auto directory =
      std::filesystem::path(testing::TempDir()) / ("kolo_yaml_" + std::to_string(::getpid()));
  std::filesystem::create_directories(directory);
  auto file = directory / "config.yaml";
  std::ofstream(file) << "np: 4\n";
  EXPECT_EQ(load_yaml(file)["np"], 4);
  std::filesystem::remove_all(directory);

  Error missing = error_of([&] { (void)load_yaml(file); });
  EXPECT_EQ(missing.code(), ErrorCode::not_found);
  EXPECT_THAT(missing.message(), HasSubstr(file.string()));
  EXPECT_EQ(error_of([] { (void)load_yaml("/"); }).code(), ErrorCode::io);
}

}  // namespace
}  // namespace kolo

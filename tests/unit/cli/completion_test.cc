#include "cli/completion.h"

#include <gmock/gmock.h>

#include "example_command.h"

namespace kolo::cli {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr Command kExample{
    .name = "example", .summary = "An example", .options = declared<Example>};
constexpr Command kSecret{.name = "secret", .is_hidden = true};
constexpr const Command* kParts[] = {&kExample, &kSecret};
constexpr Command kRoot{.name = "root", .subcommands = kParts};

std::vector<std::string> names(const std::vector<std::string>& line) {
  std::vector<std::string> all;
  for (const auto& word : complete(kRoot, line).words) all.push_back(word.name);
  return all;
}

TEST(CompletionTest, Commands) {
  EXPECT_THAT(names({""}), ElementsAre("example", "help"));
  EXPECT_THAT(names({"ex"}), ElementsAre("example"));
  EXPECT_THAT(names({"x"}), IsEmpty());
  EXPECT_THAT(names({"--"}), ElementsAre("--help", "--version"));
}

TEST(CompletionTest, HelpTakesTheNameOfACommand) {
  EXPECT_THAT(names({"help", ""}), ElementsAre("example"));
  EXPECT_THAT(names({"help", "ex"}), ElementsAre("example"));
  EXPECT_THAT(names({"help", "example", ""}), IsEmpty());
}

TEST(CompletionTest, OptionsAndTheirValues) {
  EXPECT_THAT(names({"example", "--"}), AllOf(Contains("--num-proc"), Contains("--help")));
  EXPECT_THAT(names({"example", "--mo"}), ElementsAre("--mode"));
  EXPECT_THAT(names({"example", "--e"}), ElementsAre("--env"));
  EXPECT_THAT(names({"example", "--va"}), ElementsAre("--variable"));  // a further spelling
  EXPECT_THAT(names({"example", "--mode", ""}), ElementsAre("min", "max"));
  EXPECT_THAT(names({"example", "--mode=m"}), ElementsAre("--mode=min", "--mode=max"));
  EXPECT_THAT(names({"example", "--seed", ""}), IsEmpty());
  EXPECT_TRUE(complete(kRoot, {"example", "--config-file", ""}).files);
  EXPECT_FALSE(complete(kRoot, {"example", "--mode", ""}).files);
}

TEST(CompletionTest, Arguments) {
  EXPECT_THAT(names({"example", ""}), ElementsAre("mnist", "moons"));
  EXPECT_THAT(names({"example", "--verbose", "mn"}), ElementsAre("mnist"));
  // What has been typed decides what there is.
  EXPECT_THAT(names({"example", "--mode", "max", ""}), ElementsAre("largest"));
  EXPECT_TRUE(complete(kRoot, {"example", "mnist", ""}).files);
  EXPECT_TRUE(complete(kRoot, {"example", "mnist", "./train", "--mo"}).files);
  EXPECT_THAT(names({"example", "mnist", "./train", "--mo"}), IsEmpty());
}

}  // namespace
}  // namespace kolo::cli

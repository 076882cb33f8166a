// Rules that the table of every command keeps.
#include "commands.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "base/files.h"
#include "base/text_table.h"
#include "cli/completion.h"

namespace kolo::app {
namespace {

using ::testing::HasSubstr;

struct Named {
  std::string path;
  const Command* command;
};

void collect(const std::string& path, const Command& command, std::vector<Named>& all) {
  all.push_back({path, &command});
  for (const Command* part : command.subcommands)
    collect(path + " " + std::string(part->name), *part, all);
}

std::vector<Named> all_commands() {
  std::vector<Named> all;
  collect("kolo", kKolo, all);
  return all;
}
std::vector<Named> listed_commands() {
  auto all = all_commands();
  std::erase_if(all, [](const Named& one) { return one.command->is_hidden; });
  return all;
}

class CommandsTest : public ::testing::TestWithParam<Named> {
 protected:
  [[nodiscard]] const Command& command() const { return *GetParam().command; }
  [[nodiscard]] OptionSet options() const {
    return command().options != nullptr ? command().options() : OptionSet();
  }
};

std::string test_name(const ::testing::TestParamInfo<Named>& info) {
  std::string name = info.param.path;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, CommandsTest, ::testing::ValuesIn(listed_commands()), test_name);

TEST_P(CommandsTest, IsDescribed) {
  EXPECT_FALSE(command().summary.empty());
  EXPECT_NE(command().summary.back(), '.') << "the help adds it";
  EXPECT_THAT(std::string(command().examples), HasSubstr("kolo "));
  EXPECT_EQ(command().examples.back(), '\n');
  EXPECT_TRUE(command().run != nullptr || command().forward != nullptr ||
              !command().subcommands.empty() || GetParam().path.starts_with("kolo nas "));
}

TEST_P(CommandsTest, EveryOptionIsAFullPhrase) {
  const OptionSet set = options();
  for (const auto& row : set.rows()) {
    const std::string help(row.text.help), name(row.text.name);
    ASSERT_GT(help.size(), 8U) << name;
    EXPECT_TRUE(std::isupper(static_cast<unsigned char>(help.front())) != 0)
        << name << ": " << help;
    EXPECT_TRUE(help.back() == '.' || help.back() == ':') << name << ": " << help;
    EXPECT_GE(std::count(help.begin(), help.end(), ' '), 1) << name << ": " << help;
    const bool is_flag = std::holds_alternative<bool*>(row.value);
    EXPECT_EQ(is_flag, !row.text.is_positional() && row.text.value.empty()) << name;
  }
}

TEST_P(CommandsTest, OptionsMayBeInAFile) {
  const auto set = options();
  const bool has_options = std::any_of(set.rows().begin(), set.rows().end(),
                                       [](const auto& row) { return !row.text.is_positional(); });
  EXPECT_EQ(set.has("config-file"), has_options);
}

TEST_P(CommandsTest, NamesAreUnique) {
  const OptionSet set = options();
  std::set<std::string> names{"--help", "-h"};
  for (const auto& row : set.rows()) {
    EXPECT_TRUE(
        names.insert((row.text.is_positional() ? "" : "--") + std::string(row.text.name)).second)
        << row.text.name;
    for (const auto& alias : cli::split(row.text.details.aliases, ' ')) {
      EXPECT_TRUE(alias.starts_with('-')) << alias;
      EXPECT_TRUE(names.insert(alias).second) << alias;
    }
  }
}

TEST_P(CommandsTest, DefaultsCanBeTyped) {
  const OptionSet set = options();
  for (const auto& row : set.rows()) {
    if (row.initial.empty() || !row.text.details.fallback.empty()) continue;
    EXPECT_NO_THROW(cli::set_value(row.text, row.value, {row.initial}, row.text.name))
        << row.text.name << " " << row.initial;
    EXPECT_EQ(cli::value_text(row.value), row.initial);
  }
}

TEST_P(CommandsTest, HelpFitsATerminal) {
  const std::string help = cli::help_text(GetParam().path, command());
  for (const auto& line : cli::split(help, '\n')) EXPECT_LE(letters_of(line), 100U) << line;
  EXPECT_THAT(help, HasSubstr("Usage: " + GetParam().path));
  EXPECT_THAT(help, HasSubstr("\nExamples:\n  "));
  EXPECT_THAT(cli::manual_text(GetParam().path, command()), HasSubstr("## " + GetParam().path));
}

TEST_P(CommandsTest, IsCompleted) {
  std::vector<std::string> line = cli::split(GetParam().path, ' ');
  line.erase(line.begin());
  if (line.empty()) return;
  std::vector<std::string> found;
  for (const auto& word : cli::complete(kKolo, line).words) found.push_back(word.name);
  EXPECT_THAT(found, ::testing::Contains(line.back()));
  line.emplace_back("--");
  if (command().options == nullptr) return;
  found.clear();
  for (const auto& word : cli::complete(kKolo, line).words) found.push_back(word.name);
  const OptionSet set = options();
  for (const auto& row : set.rows()) {
    if (row.text.is_positional()) continue;
    EXPECT_THAT(found, ::testing::Contains("--" + std::string(row.text.name)));
  }
}

/// The part of a file between the mark and the first line without a |.
std::string table_after(const std::string& file, const std::string& mark) {
  const std::string text = read_file(std::string(KOLO_SOURCE_DIR "/docs/") + file);
  const auto at = text.find(mark);
  if (at == std::string::npos) return "no mark";
  const auto begin = text.find("\n|", at) + 1;
  auto end = begin;
  while (end < text.size() && text[end] == '|') end = text.find('\n', end) + 1;
  return text.substr(begin, end - begin);
}

TEST(DocsTest, TheTablesAreThoseOfTheCommands) {
  EXPECT_EQ(table_after("run.md", "`kolo manual run --table`"), cli::manual_table(kRun.options()))
      << "docs/run.md must hold the output of `kolo manual run --table`";
}

TEST(DocsTest, TheReferenceHasEveryCommand) {
  const std::string text = read_file(KOLO_SOURCE_DIR "/docs/commands.md");
  for (const auto& [path, command] : listed_commands()) {
    if (command == &kKolo) continue;
    EXPECT_NE(text.find(cli::manual_text(path, *command)), std::string::npos)
        << path << ": docs/commands.md must end with the output of `kolo manual`";
  }
}

}  // namespace
}  // namespace kolo::app

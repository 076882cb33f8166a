// The help and the manual of a command, from its tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text_table.h"
#include "cli/command.h"
#include "cli/help_parts.h"

namespace kolo::cli {
namespace {

constexpr std::size_t kColumns = 100;
constexpr std::size_t kIndent = 10;  ///< of the phrase under an option's names

/// Words in lines of at most kColumns, with `indent` blanks before each.
std::string wrapped(std::string_view text, std::size_t indent) {
  std::string all, line;
  std::size_t columns = 0;  // letters, not bytes
  for (const auto& word : split(text, ' ')) {
    if (!line.empty() && indent + columns + 1 + letters_of(word) > kColumns) {
      all += std::string(indent, ' ') + line + "\n";
      line.clear();
      columns = 0;
    }
    columns += letters_of(word) + (line.empty() ? 0 : 1);
    line += (line.empty() ? "" : " ") + word;
  }
  return all + std::string(indent, ' ') + line + "\n";
}

std::string default_of(const OptionSet::Row& row) {
  return row.text.details.fallback.empty() ? row.initial : std::string(row.text.details.fallback);
}

std::vector<std::string> variables_of(const OptionText& text) {
  auto names = split(text.details.variables, ' ');
  for (auto& name : names) name.insert(0, "KOLO_");
  return names;
}

/// A name in a column of `width`, and what it means.
std::string entry_text(const NamedText& row, std::size_t indent, std::size_t width) {
  const std::string about = wrapped(row.summary, indent + width + 2);
  return fmt::format("{:{}}{:<{}}  {}", "", indent, row.name, width,
                     about.substr(indent + width + 2));
}

std::string list_text(std::span<const NamedText> rows, std::size_t indent) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, letters_of(row.name));
  std::string text;
  for (const auto& row : rows) text += entry_text(row, indent, width);
  return text;
}

std::string row_text(const OptionSet::Row& row, const OptionSet& set) {
  std::string text = fmt::format("  {}\n{}", names_of(row.text), wrapped(phrase_of(row), kIndent));
  if (row.text.details.only_names) text += list_text(row.text.details.names(set), kIndent);
  return text;
}

std::string subcommands_text(const Command& command) {
  std::size_t width = 0;
  for (const Command* part : command.subcommands)
    if (!part->is_hidden) width = std::max(width, part->name.size());
  std::string text;
  for (const Command* part : command.subcommands) {
    if (part->is_hidden) continue;
    if (!part->heading.empty())
      text += fmt::format("\n{}:\n", part->heading);
    else if (text.empty())
      text += "\nCommands:\n";
    text += entry_text({std::string(part->name), std::string(part->summary)}, 2, width);
  }
  return text;
}

/// What a row means, on one line.
std::string meaning_of(const OptionSet::Row& row, const OptionSet& set) {
  std::string text(row.text.help);
  if (!row.text.details.only_names) return text;
  std::vector<std::string> names;
  for (const auto& entry : row.text.details.names(set)) names.push_back(entry.name);
  return text + fmt::format(" {}.", fmt::join(names, ", "));
}

/// Cells of a Markdown table.
std::string escaped(std::string text) {
  for (std::size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

}  // namespace

std::string names_of(const OptionText& text) {
  if (text.is_positional()) return std::string(text.name);
  std::string names;
  for (const auto& alias : split(text.details.aliases, ' ')) names += alias + ", ";
  return fmt::format("{}--{}{}{}", names, text.name, text.value.empty() ? "" : " ", text.value);
}

std::string phrase_of(const OptionSet::Row& row) {
  std::string phrase(row.text.help);
  if (row.is_list() && !row.text.is_positional() && row.text.value.find(' ') == std::string::npos)
    phrase += " May be given several times.";
  if (row.text.details.is_needed) phrase += " [required]";
  if (const auto text = default_of(row); !text.empty())
    phrase += fmt::format(" [default: {}]", text);
  if (const auto names = variables_of(row.text); !names.empty())
    phrase += fmt::format(" [env: {}]", fmt::join(names, ", "));
  return phrase;
}

std::vector<std::string_view> headings_of(const OptionSet& set) {
  std::vector<std::string_view> headings;
  for (const bool positional : {true, false})
    for (const auto& row : set.rows())
      if (row.text.is_positional() == positional &&
          std::find(headings.begin(), headings.end(), row.heading) == headings.end())
        headings.push_back(row.heading);
  return headings;
}

std::string usage_text(std::string_view path, const Command& command, const OptionSet& set) {
  std::string text(path);
  if (command.options == nullptr) return text + " COMMAND [OPTIONS]";
  text += " [OPTIONS]";
  for (const auto& row : set.rows())
    if (row.text.details.is_needed) text += fmt::format(" --{} {}", row.text.name, row.text.value);
  for (const auto& row : set.rows()) {
    const auto& details = row.text.details;
    if (!row.text.is_positional()) continue;
    std::string word(row.text.name);
    if (details.takes != Takes::one)
      word += " [ARGUMENTS]...";
    else if (row.is_list())
      word += "...";
    if (details.takes == Takes::separated) word.insert(0, "-- ");
    text += details.is_optional ? fmt::format(" [{}]", word) : " " + word;
  }
  return text;
}

std::string help_text(std::string_view path, const Command& command) {
  const OptionSet set = command.options != nullptr ? command.options() : OptionSet();
  std::string text = wrapped(fmt::format("{}.", command.summary), 0);
  text += fmt::format("\nUsage: {}\n", usage_text(path, command, set));
  if (!command.examples.empty()) {
    text += "\nExamples:\n";
    for (const auto& line : split(command.examples, '\n')) text += fmt::format("  {}\n", line);
  }
  for (const auto& paragraph : split(command.notes, '\n')) text += "\n" + wrapped(paragraph, 0);
  if (!command.subcommands.empty()) text += subcommands_text(command);
  for (const auto heading : headings_of(set)) {
    text += fmt::format("\n{}:\n", heading);
    for (const auto& row : set.rows())
      if (row.heading == heading) text += row_text(row, set);
  }
  if (command.options == nullptr)
    return text + fmt::format("\n{} COMMAND --help describes a command and its options.\n", path);
  return text + "\nHelp:\n  -h, --help\n          Print this text.\n";
}

std::string manual_table(const OptionSet& set) {
  std::string text = "| Option | Variable | Default | Meaning |\n|---|---|---|---|\n";
  for (const auto& row : set.rows()) {
    const auto variables = variables_of(row.text);
    text += fmt::format("| `{}` | {} | {} | {} |\n", escaped(names_of(row.text)),
                        variables.empty() ? "" : fmt::format("`{}`", fmt::join(variables, "`, `")),
                        escaped(default_of(row)), escaped(meaning_of(row, set)));
  }
  return text;
}

std::string manual_text(std::string_view path, const Command& command) {
  const OptionSet set = command.options != nullptr ? command.options() : OptionSet();
  std::string text =
      fmt::format("## {}\n\n", path) + wrapped(fmt::format("{}.", command.summary), 0);
  text += fmt::format("\n```\n{}\n```\n", usage_text(path, command, set));
  if (!command.examples.empty())
    text += fmt::format("\n```\n{}\n```\n", fmt::join(split(command.examples, '\n'), "\n"));
  for (const auto& paragraph : split(command.notes, '\n')) text += "\n" + wrapped(paragraph, 0);
  if (!set.rows().empty()) text += "\n" + manual_table(set);
  return text;
}

}  // namespace kolo::cli

// Pages for man(1), from the tables of commands. The macros are those of man(7).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "cli/command.h"
#include "cli/help_parts.h"

namespace kolo::cli {
namespace {

/// Text as it is: a backslash, a minus sign, and a dot or a quote that begins a line would mean
/// something else.
std::string literal(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    const bool begins_line = safe.empty() || safe.back() == '\n';
    if (begins_line && (c == '.' || c == '\'')) safe += "\\&";
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else
      safe += c;
  }
  return safe;
}

std::string in_capitals(std::string_view text) {
  std::string capitals(text);
  std::transform(capitals.begin(), capitals.end(), capitals.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return capitals;
}

/// A term in bold, and indented below it what it means.
std::string term(std::string_view name, std::string_view about) {
  return fmt::format(".TP\n.B {}\n{}\n", literal(name), literal(about));
}

std::string rows_under(std::string_view heading, const OptionSet& set) {
  std::string text = fmt::format(".SH {}\n", in_capitals(heading));
  for (const auto& row : set.rows()) {
    if (row.heading != heading) continue;
    text += term(names_of(row.text), phrase_of(row));
    if (!row.text.details.only_names) continue;
    text += ".RS\n";
    for (const auto& entry : row.text.details.names(set)) text += term(entry.name, entry.summary);
    text += ".RE\n";
  }
  return text;
}

}  // namespace

std::string man_page_name(std::string_view path) {
  std::string name(path);
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string man_page(std::string_view path, const Command& command, std::string_view version) {
  const OptionSet set = command.options != nullptr ? command.options() : OptionSet();
  const std::string name = man_page_name(path);
  std::string text =
      fmt::format(".TH {} 1 \"\" \"kolo {}\" \"kolo\"\n", in_capitals(name), version);
  text += fmt::format(".SH NAME\n{} \\- {}\n", name, literal(command.summary));
  const std::string usage = usage_text(path, command, set);
  text += fmt::format(".SH SYNOPSIS\n.B {}\n{}\n", literal(path),
                      literal(usage.substr(path.size() + 1)));
  const auto paragraphs = split(command.notes, '\n');
  if (!paragraphs.empty()) text += ".SH DESCRIPTION\n";
  for (const auto& paragraph : paragraphs) text += fmt::format(".PP\n{}\n", literal(paragraph));
  if (!command.subcommands.empty()) text += ".SH COMMANDS\n";
  for (const Command* part : command.subcommands)
    if (!part->is_hidden) text += term(part->name, part->summary);
  for (const auto heading : headings_of(set)) text += rows_under(heading, set);
  if (!command.examples.empty())
    text += fmt::format(".SH EXAMPLES\n.nf\n{}.fi\n", literal(command.examples));
  const auto above = path.rfind(' ');
  text += ".SH SEE ALSO\n";
  text += above == std::string_view::npos
              ? std::string("Each command has a page: kolo\\-run(1), kolo\\-tune(1) and so on.\n")
              : fmt::format("{}(1)\n", literal(man_page_name(path.substr(0, above))));
  return text;
}

}  // namespace kolo::cli

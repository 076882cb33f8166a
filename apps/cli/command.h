// A command of a program: its options, what the help says about it, and what it does.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/option_set.h"

namespace kolo::cli {

struct Command {
  std::string_view name;
  std::string_view summary{};   ///< one sentence, present tense, without a stop at its end
  std::string_view examples{};  ///< lines to copy, each with its end
  std::string_view notes{};     ///< further paragraphs of the help
  /// Null: it has subcommands only.
  OptionSet (*options)() = nullptr;
  /// Returns the exit status; throws kolo::Error, whose invalid_argument is a usage error.
  int (*run)(OptionSet& given) = nullptr;
  std::span<const Command* const> subcommands{};
  /// Takes the words as they are, in place of options and subcommands.
  int (*forward)(const Arguments& arguments) = nullptr;
  bool is_hidden = false;  ///< for programs: neither listed nor completed
  /// In the help of the command above, over this one and those after it: "Commands for jobs".
  std::string_view heading{};

  [[nodiscard]] const Command* find(std::string_view subcommand) const;
};

/// `Options` has a member `void declare(OptionSet&)`; `Run` is int(Options&) or int(Options&,
/// OptionSet&), where the set says what was given and from where.
template <class Options>
OptionSet declared() {
  auto values = std::make_shared<Options>();
  OptionSet set(values);
  values->declare(set);
  set.add_config_file();
  return set;
}
template <class Options, auto Run>
int run_declared(OptionSet& given) {
  auto& options = *static_cast<Options*>(given.values());
  if constexpr (std::is_invocable_v<decltype(Run), Options&, OptionSet&>)
    return Run(options, given);
  else
    return Run(options);
}

/// For commands without options.
struct NoOptions {
  void declare(OptionSet& /*set*/) {}
};

/// A command as it is found by the words that name it: "kolo analytics topk".
struct FoundCommand {
  const Command* command;
  std::string path;
  Arguments rest;  ///< the words after it
};
FoundCommand find_command(const Command& root, const Arguments& arguments);

/// "kolo trials [OPTIONS] STUDY".
std::string usage_text(std::string_view path, const Command& command, const OptionSet& set);
/// What --help prints.
std::string help_text(std::string_view path, const Command& command);
/// A section of the reference in Markdown, and its table of options alone.
std::string manual_text(std::string_view path, const Command& command);
std::string manual_table(const OptionSet& set);
/// A page for man(1), and the name of such a page: "kolo-analytics-topk".
std::string man_page(std::string_view path, const Command& command, std::string_view version);
std::string man_page_name(std::string_view path);

/// Runs what the words say and prints errors on one line. The exit status: 2 for a usage error, 1
/// for a failure, else the command's own.
int run_program(const Command& root, const Arguments& arguments);

}  // namespace kolo::cli

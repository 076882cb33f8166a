// kolo manual, kolo completion: what the tables of all commands give besides their help.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/registry.h"
#include "cli/completion.h"
#include "commands.h"
#include "kolo/version.h"

namespace kolo::app {
namespace {

struct ManualOptions {
  std::vector<std::string> command;
  bool table = false;
  std::string man;
  void declare(OptionSet& set);
};
std::vector<NamedText> command_names(const OptionSet& typed) {
  const Command* command = &kKolo;
  for (const auto& name : typed.at("COMMAND").given)
    if (command != nullptr) command = command->find(name);
  std::vector<NamedText> names;
  if (command != nullptr)
    for (const Command* part : command->subcommands)
      if (!part->is_hidden) names.push_back({std::string(part->name), std::string(part->summary)});
  return names;
}

constexpr Option<ManualOptions> kManualRows[] = {
    {&ManualOptions::command, "COMMAND", "",
     "The command, for example `run` or `analytics topk`; all of them if none is given.",
     is_optional, names(command_names)},
    {&ManualOptions::table, "table", "", "Print the table of its options alone."},
    {&ManualOptions::man, "man", "DIR",
     "Write pages for man(1) into this directory instead, one for each command."},
};
void ManualOptions::declare(OptionSet& set) { set.add("Options", kManualRows, *this); }

/// A command and what is below it.
std::string sections(const std::string& path, const Command& command) {
  std::string text = &command == &kKolo ? "" : cli::manual_text(path, command);
  for (const Command* part : command.subcommands)
    if (!part->is_hidden)
      text += (text.empty() ? "" : "\n") + sections(path + " " + std::string(part->name), *part);
  return text;
}

/// A page of the command and of each that is below it.
void write_man_pages(const std::filesystem::path& directory, const std::string& path,
                     const Command& command) {
  write_file_atomically(directory / (cli::man_page_name(path) + ".1"),
                        cli::man_page(path, command, KOLO_VERSION));
  for (const Command* part : command.subcommands)
    if (!part->is_hidden) write_man_pages(directory, path + " " + std::string(part->name), *part);
}

int run_manual(ManualOptions& options) {
  const Command* command = &kKolo;
  std::string path = "kolo";
  for (const auto& name : options.command) {
    std::vector<std::string_view> known;
    for (const Command* part : command->subcommands)
      if (!part->is_hidden) known.push_back(part->name);
    if (std::find(known.begin(), known.end(), name) == known.end())
      throw_unknown_name("command", name, known, ErrorCode::invalid_argument);
    command = command->find(name);
    path += " " + name;
  }
  if (!options.man.empty()) {
    std::filesystem::create_directories(options.man);
    write_man_pages(options.man, path, *command);
    return 0;
  }
  if (options.table && command->options == nullptr)
    throw_error(ErrorCode::invalid_argument, "{} has no options of its own", path);
  fmt::print("{}",
             options.table ? cli::manual_table(command->options()) : sections(path, *command));
  return 0;
}

struct CompletionOptions {
  std::string shell;
  void declare(OptionSet& set);
};
constexpr Option<CompletionOptions> kCompletionRows[] = {
    {&CompletionOptions::shell, "SHELL", "", "The shell: bash, zsh or fish.",
     choices("bash|zsh|fish")},
};
void CompletionOptions::declare(OptionSet& set) { set.add("Arguments", kCompletionRows, *this); }

int run_completion(CompletionOptions& options) {
  fmt::print("{}", cli::completion_script(options.shell));
  return 0;
}

int run_complete(const cli::Arguments& words) {
  const auto found = cli::complete(kKolo, words.empty() ? cli::Arguments{""} : words);
  for (const auto& word : found.words) fmt::print("{}\t{}\n", word.name, word.summary);
  if (found.files) fmt::print(":files\n");
  return 0;
}

}  // namespace

constinit const Command kManual{
    .name = "manual",
    .summary = "Print the reference of commands and options in Markdown",
    .examples =
        "kolo manual run\n"
        "kolo manual --man ~/.local/share/man/man1 && man kolo-run\n",
    .options = declared<ManualOptions>,
    .run = run_declared<ManualOptions, run_manual>,
};

constinit const Command kCompletion{
    .name = "completion",
    .summary = "Print a script that completes commands, options and names in a shell",
    .examples =
        "source <(kolo completion bash)\n"
        "kolo completion fish > ~/.config/fish/completions/kolo.fish\n",
    .options = declared<CompletionOptions>,
    .run = run_declared<CompletionOptions, run_completion>,
};

constinit const Command kComplete{.name = "__complete", .forward = run_complete, .is_hidden = true};

}  // namespace kolo::app

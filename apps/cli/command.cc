#include "cli/command.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>

#include "base/errors.h"
#include "base/registry.h"
#include "base/utf8.h"

namespace kolo::cli {
namespace {

constexpr int kUsageError = 2;
constexpr int kFailure = 1;

std::vector<std::string_view> subcommand_names(const Command& command) {
  std::vector<std::string_view> names;
  for (const Command* part : command.subcommands)
    if (!part->is_hidden) names.push_back(part->name);
  return names;
}

/// For a word that should name a subcommand, or ask for help.
[[noreturn]] void throw_unknown_word(const FoundCommand& found) {
  const std::string& word = found.rest[0];
  std::vector<std::string_view> known;
  if (word.starts_with('-')) {
    known.emplace_back("--help");
    // The program itself has this option, too.
    if (found.path.find(' ') == std::string::npos) known.emplace_back("--version");
    throw_unknown_name("option", word, known, ErrorCode::invalid_argument);
  }
  throw_unknown_name("command", word, subcommand_names(*found.command),
                     ErrorCode::invalid_argument);
}

void read_options(OptionSet& set, const FoundCommand& found) {
  try {
    set.read(found.rest, usage_text(found.path, *found.command, set));
  } catch (const Error& error) {
    // The name of a subcommand with a typo is taken for an argument: `kolo nas drwa`.
    const auto near = found.rest.empty()
                          ? std::string_view()
                          : nearest_name(found.rest[0], subcommand_names(*found.command));
    if (near.empty()) throw;
    throw Error(error.code(), fmt::format("{}; or did you mean the command '{} {}'?",
                                          error.message(), found.path, near));
  }
}

bool asks_for_help(const Arguments& words) { return words[0] == "--help" || words[0] == "-h"; }

int run_found(const FoundCommand& found) {
  const Command& command = *found.command;
  if (command.forward != nullptr) return command.forward(found.rest);
  if (command.options != nullptr) {
    OptionSet set = command.options();
    read_options(set, found);
    if (!set.wants_help()) return command.run(set);
  } else if (!found.rest.empty() && !asks_for_help(found.rest)) {
    throw_unknown_word(found);
  }
  fmt::print("{}", help_text(found.path, command));
  return command.options == nullptr && found.rest.empty() ? kUsageError : 0;
}

/// `kolo help best`.
int print_help(const FoundCommand& found) {
  // Words behind a command that has options of its own are arguments: `kolo help best mnist`.
  const bool is_group = found.command->options == nullptr && found.command->forward == nullptr;
  if (is_group && !found.rest.empty() && !asks_for_help(found.rest)) throw_unknown_word(found);
  fmt::print("{}", help_text(found.path, *found.command));
  return 0;
}

/// What was printed may still be on its way to a disk that is full. Whoever has closed standard
/// output wants none.
void require_output() {
  if (std::fflush(stdout) != 0 && errno != EBADF) throw_errno("cannot write the output");
}

}  // namespace

const Command* Command::find(std::string_view subcommand) const {
  for (const Command* part : subcommands)
    if (part->name == subcommand) return part;
  return nullptr;
}

FoundCommand find_command(const Command& root, const Arguments& arguments) {
  FoundCommand found{&root, std::string(root.name), {}};
  std::size_t i = 0;
  for (; i < arguments.size(); ++i) {
    const Command* const next = found.command->find(arguments[i]);
    if (next == nullptr) break;
    found.command = next;
    found.path += " " + arguments[i];
    if (next->forward != nullptr) {
      ++i;
      break;
    }
  }
  found.rest.assign(arguments.begin() + static_cast<std::ptrdiff_t>(i), arguments.end());
  return found;
}

int run_program(const Command& root, const Arguments& arguments) {
  const bool wants_help = !arguments.empty() && arguments[0] == "help";  // kolo help run
  const FoundCommand found =
      find_command(root, {arguments.begin() + (wants_help ? 1 : 0), arguments.end()});
  try {
    const int status = wants_help ? print_help(found) : run_found(found);
    if (status == 0) require_output();
    return status;
  } catch (const Error& error) {
    fmt::print(stderr, "{}: {}\n", found.path, printable_lines(error.message()));
    return error.code() == ErrorCode::invalid_argument ? kUsageError : kFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", found.path, error.what());
    return kFailure;
  }
}

}  // namespace kolo::cli

// What may stand at the end of a command line, for shells.
#pragma once

#include <string>
#include <vector>

#include "cli/command.h"

namespace kolo::cli {

/// Words that may take the place of the last one, which may be empty or only begun.
struct Completion {
  std::vector<NamedText> words{};
  bool files = false;  ///< or names of files, which the shell knows itself
};

/// `line` begins after the program's name and has at least one word.
Completion complete(const Command& root, const std::vector<std::string>& line);

/// The script that a shell sources: bash, zsh or fish. Throws invalid_argument for another shell.
std::string completion_script(const std::string& shell);

}  // namespace kolo::cli

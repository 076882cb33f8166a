// Command lines as words, without a shell.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

/// Splits at blanks; '…', "…" and \ keep what they enclose, as in a shell. Nothing is expanded: $,
/// *, ; and ` are letters. Throws invalid_argument for a quote without its end; `what` names the
/// text.
std::vector<std::string> split_words(std::string_view text, std::string_view what);

/// One word as a shell reads it back.
std::string shell_quoted(std::string_view word);
/// All of them, as split_words() and a shell read them back.
std::string shell_line(const std::vector<std::string>& words);

/// The first word of a command line that stands in `directory`, for use from elsewhere: a path
/// becomes absolute, a name that is looked up on the PATH stays.
std::string absolute_program(const std::string& word, const std::filesystem::path& directory);

}  // namespace kolo

// complete() first descends through the subcommands and then walks over the remaining words with
// the option table of the command that it has reached. The walk follows the rules of the reader but
// reports no errors, because a line that is still being typed is often invalid. Values typed so far
// are kept as texts in the option set, so that names can depend on them (the studies in --storage).
// The shell scripts contain no names of commands or options: they ask `kolo __complete` each time,
// so they stay valid when options change.
#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/errors.h"

namespace kolo::cli {
namespace {

bool is_file_name(std::string_view value) {
  return value.starts_with("FILE") || value.starts_with("DIR") || value.starts_with("PATH") ||
         value.find("FILE") != std::string_view::npos || value == "PROGRAM" ||
         value == "STUDY.yaml";
}

/// What may stand for the value of a row.
Completion values_of(const OptionSet::Row& row, const OptionSet& typed) {
  Completion found;
  for (const auto& choice : split(row.text.details.choices, '|')) found.words.push_back({choice});
  if (row.text.details.names != nullptr) {
    try {
      auto names = row.text.details.names(typed);
      found.words.insert(found.words.end(), names.begin(), names.end());
    } catch (const Error&) {
      // A database that is not there has no names to offer.
    }
  }
  found.files = is_file_name(row.text.is_positional() ? row.text.name : row.text.value);
  return found;
}

/// The options that may stand for a word, each once: by a further spelling if its name does not
/// fit.
Completion options_of(const OptionSet& set, const std::string& begun) {
  Completion found;
  for (const auto& row : set.rows()) {
    if (row.text.is_positional()) continue;
    std::string offered = "--" + std::string(row.text.name);
    if (!offered.starts_with(begun))
      for (const auto& alias : split(row.text.details.aliases, ' '))
        if (alias.starts_with("--") && alias.starts_with(begun)) offered = alias;
    found.words.push_back({offered, std::string(row.text.help)});
  }
  found.words.push_back({"--help", std::string(help_option().help)});
  return found;
}

/// Walks over the words before the last one as the reader does, without checking them.
class Walk {
 public:
  Walk(OptionSet& set, const Arguments& words) : set_(set) {
    for (std::size_t i = 0; i < words.size() && !in_program_; ++i) step(words[i]);
  }
  /// For the word at the end.
  [[nodiscard]] Completion finish(const std::string& last) {
    if (in_program_) return {.files = true};
    if (pending_ != nullptr) return values_of(*pending_, set_);
    if (last.starts_with('-')) {
      const auto equals = last.find('=');
      const auto* row = equals == std::string::npos ? nullptr : find(last.substr(0, equals));
      if (row == nullptr) return options_of(set_, last);
      Completion found = values_of(*row, set_);
      for (auto& word : found.words) word.name = last.substr(0, equals + 1) + word.name;
      return found;
    }
    const auto* row = set_.next_positional(last);
    return row == nullptr ? options_of(set_, last) : values_of(*row, set_);
  }

 private:
  void step(const std::string& word) {
    if (pending_ != nullptr) {
      pending_->take({word}, pending_->text.name);
      pending_ = nullptr;
    } else if (word == "--") {
      in_program_ = true;
    } else if (word.starts_with('-')) {
      const auto equals = word.find('=');
      OptionSet::Row* const row = find(word.substr(0, equals));
      if (row == nullptr || row->text.value.empty()) return;
      if (equals == std::string::npos)
        pending_ = row;
      else
        row->take({word.substr(equals + 1)}, row->text.name);
    } else if (OptionSet::Row* const row = set_.next_positional(word)) {
      row->take({word}, row->text.name);
      in_program_ = row->text.details.takes == Takes::program;
    }
  }
  OptionSet::Row* find(const std::string& typed) {
    try {
      return set_.find(typed);
    } catch (const Error&) {
      return nullptr;  // the beginning of several options
    }
  }

  OptionSet& set_;
  OptionSet::Row* pending_ = nullptr;  ///< the option whose value comes next
  bool in_program_ = false;
};

}  // namespace

Completion complete(const Command& root, const std::vector<std::string>& line) {
  const std::string& last = line.back();
  // Commands that pass their words on are described by the same tables.
  const Command* command = &root;
  const bool wants_help = line.size() > 1 && line[0] == "help";  // kolo help run
  std::size_t i = wants_help ? 1 : 0;
  for (; i + 1 < line.size(); ++i) {
    const Command* const next = command->find(line[i]);
    if (next == nullptr) break;
    command = next;
  }
  Completion found;
  if (command->options != nullptr && !wants_help) {
    OptionSet set = command->options();
    Walk walk(set, {line.begin() + static_cast<std::ptrdiff_t>(i), line.end() - 1});
    found = walk.finish(last);
  }
  if (i + 1 == line.size())
    for (const Command* part : command->subcommands)
      if (!part->is_hidden && !last.starts_with('-'))
        found.words.push_back({std::string(part->name), std::string(part->summary)});
  const bool is_first = line.size() == 1;
  if (is_first) found.words.push_back({"help", "Describe a command and its options"});
  if (last.starts_with('-')) {
    if (command->options == nullptr)
      found.words.push_back({"--help", std::string(help_option().help)});
    if (is_first) found.words.push_back({"--version", "Print the version."});
  }
  std::erase_if(found.words, [&](const NamedText& word) { return !word.name.starts_with(last); });
  return found;
}

std::string completion_script(const std::string& shell) {
  // Each asks `kolo __complete` for lines "WORD<tab>SUMMARY"; a line ":files" asks for names of
  // files as well.
  if (shell == "bash")
    return R"(_kolo() {
  local line=("${COMP_WORDS[@]:1:COMP_CWORD}") current="${COMP_WORDS[COMP_CWORD]}" word
  # bash cuts words at "=": they are put together again.
  local words=() part
  for part in "${line[@]}"; do
    if [[ ${#words[@]} -gt 0 && ( $part == = || ${words[-1]} == --*= ) ]]; then
      words[-1]+=$part
    else
      words+=("$part")
    fi
  done
  [[ ${words[-1]} == --*= ]] && current=''
  COMPREPLY=()
  while IFS=$'\t' read -r word _; do
    if [[ $word == :files ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r part; do COMPREPLY+=("$part"); done < <(compgen -f -- "$current")
    else
      [[ ${words[-1]} == --*=* ]] && word="${word#*=}"
      COMPREPLY+=("$word")
    fi
  done < <("${COMP_WORDS[0]}" __complete "${words[@]}" 2>/dev/null)
}
complete -F _kolo kolo
)";
  if (shell == "zsh")
    return R"(#compdef kolo
_kolo() {
  local -a found
  local line word
  for line in "${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    word="${line%%$'\t'*}"
    if [[ $word == :files ]]; then
      _files
    elif [[ -n $word ]]; then
      found+=("${word//:/\\:}:${line#*$'\t'}")
    fi
  done
  (( ${#found} )) && _describe kolo found
}
# As a file in a directory of fpath it is the function itself; read by `source` it declares one.
if [[ $funcstack[1] == _kolo ]]; then _kolo "$@"; else compdef _kolo kolo; fi
)";
  if (shell == "fish")
    return R"(function __kolo_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in ($words[1] __complete $words[2..-1] 2>/dev/null)
    if test "$line" = :files
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c kolo -f -a '(__kolo_complete)'
)";
  throw_error(ErrorCode::invalid_argument,
              "there is no completion for '{}'; known: bash, zsh, fish", shell);
}

}  // namespace kolo::cli

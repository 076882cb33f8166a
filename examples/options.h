// --name value on the command line of an example.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <string_view>

namespace options {

/// An option with its value, and what it is for: {"--epochs N", "train for N epochs (3)"}.
struct Known {
  std::string_view option, purpose;
};

/// Prints the options for --help, or says which word is none of them, and ends the program then.
inline void check(int argc, char** argv, std::initializer_list<Known> known) {
  for (int i = 1; i < argc; i += 2) {
    const std::string_view word = argv[i];
    bool found = false;
    for (const Known& one : known)
      found = found || one.option.substr(0, one.option.find(' ')) == word;
    if (found) continue;
    const bool asked = word == "--help" || word == "-h";
    std::FILE* out = asked ? stdout : stderr;
    if (!asked) std::fprintf(out, "%s: unknown option %s\n", argv[0], argv[i]);
    std::fprintf(out, "options of %s:\n", argv[0]);
    for (const Known& one : known)
      std::fprintf(out, "  %-20.*s %.*s\n", static_cast<int>(one.option.size()), one.option.data(),
                   static_cast<int>(one.purpose.size()), one.purpose.data());
    std::exit(asked ? 0 : 2);
  }
}

/// The value after `name`, or `otherwise`.
inline std::string text(int argc, char** argv, const std::string& name,
                        const std::string& otherwise) {
  for (int i = 1; i < argc; ++i)
    if (argv[i] == name) {
      if (i + 1 == argc) throw std::invalid_argument(name + " needs a value");
      return argv[i + 1];
    }
  return otherwise;
}

inline int number(int argc, char** argv, const std::string& name, int otherwise) {
  const std::string value = text(argc, argv, name, std::to_string(otherwise));
  std::size_t used = 0;
  const int result = std::stoi(value, &used);
  if (used != value.size() || result < 0)
    throw std::invalid_argument(name + " " + value + ": expected a number");
  return result;
}

}  // namespace options

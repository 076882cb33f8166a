// --name value on the command line of an example.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace options {

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

// Command lines of benches: --quick, and options with a value.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <map>
#include <string>

namespace bench {

class Arguments {
 public:
  /// Anything but --quick and `options` (without the dashes) ends the program with status 2.
  Arguments(int argc, char** argv, const char* program,
            std::initializer_list<const char*> options) {
    for (const char* option : options) values_.emplace(std::string("--") + option, "");
    for (int i = 1; i < argc; ++i) {
      const std::string argument = argv[i];
      const auto found = values_.find(argument);
      if (argument == "--quick") {
        quick_ = true;
      } else if (found != values_.end() && i + 1 < argc) {
        found->second = argv[++i];
      } else {
        std::fprintf(stderr, "%s: unknown argument '%s'\n", program, argv[i]);
        std::exit(2);
      }
    }
  }

  [[nodiscard]] bool quick() const noexcept { return quick_; }
  /// "" where it was not given.
  [[nodiscard]] const std::string& operator[](const char* option) const {
    return values_.at(std::string("--") + option);
  }

 private:
  bool quick_ = false;
  std::map<std::string, std::string> values_;
};

}  // namespace bench

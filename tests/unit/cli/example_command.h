// A command with an option of every kind, for the tests.
#pragma once

#include "cli/command.h"

namespace kolo::cli {

struct Example {
  std::optional<int> ranks;
  std::string mode = "min";
  double seconds = 30;
  std::uint64_t seed = 0;
  bool verbose = false;
  bool waits = true;
  std::vector<std::string> env, pair;
  std::string config;
  std::string study, description;
  std::vector<std::string> program;
  void declare(OptionSet& set);
};

inline bool is_yaml(std::string_view word) { return word.ends_with(".yaml"); }
inline std::vector<NamedText> example_studies(const OptionSet& typed) {
  const auto& mode = typed.at("mode").given;
  if (!mode.empty() && mode.back() == "max") return {{"largest", "A study of large values."}};
  return {{"mnist", "Digits."}, {"moons", "Two half circles."}};
}

inline constexpr Option<Example> kExampleArguments[] = {
    {&Example::study, "STUDY", "", "The study.", names(example_studies)},
    {&Example::description, "FILE.yaml", "", "A file.", is_optional, fits(is_yaml)},
    {&Example::program, "PROGRAM", "", "The program.", is_optional, takes(Takes::program)},
};
inline constexpr Option<Example> kExampleOptions[] = {
    {&Example::ranks, "num-proc", "N", "Start N ranks.", aliases("-np -n"),
     variables("TEST_NUM_PROC TEST_OLD_NUM_PROC"), least(1), most(64)},
    {&Example::mode, "mode", "min|max", "Look for small or large values.", variables("TEST_MODE"),
     keys("search.mode"), choices("min|max")},
    {&Example::seconds, "start-timeout", "SECONDS", "Wait so long.", least(0.001)},
    {&Example::seed, "seed", "N", "Draw from this seed."},
    {&Example::verbose, "verbose", "", "Print each step.", variables("TEST_VERBOSE")},
    {&Example::waits, "no-wait", "", "Do not wait."},
    {&Example::env, "env", "NAME=VALUE", "Set a variable.", aliases("-x --variable")},
    {&Example::pair, "xy", "X Y", "Draw Y against X."},
    {&Example::config, "config-file", "FILE", "Read options from a file.", is_file},
};
inline constexpr std::string_view kUnused[] = {"search", "params"};

inline void Example::declare(OptionSet& set) {
  set.add("Arguments", kExampleArguments, *this);
  set.add("Options", kExampleOptions, *this);
  set.pass_over(kUnused);
}

}  // namespace kolo::cli

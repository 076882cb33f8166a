// A text is tried as a built-in name, a shared library, a Python name and then as a file or a
// program, from the most to the least specific form. A problem may bring its run function; --run is
// loaded afterwards and replaces it. Exactly one of `run` and `program` is set by load_run(), since
// the caller decides by this how evaluations start. A path of a program is made absolute, because
// evaluations start in other directories. A script with the executable bit is a program of its own,
// whatever its language.
#include "hps/problem/catalog.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/errors.h"
#include "base/files.h"
#include "base/registry.h"
#include "base/words.h"
#include "base/yaml.h"
#include "hps/problem/function_problems.h"
#include "hps/problem/plugin.h"
#include "hps/problem/problem_document.h"
#include "hps/problem/python_problem.h"

namespace kolo::hps {
namespace {

namespace fs = std::filesystem;

bool is_file(std::string_view text) {
  std::error_code ignored;
  return fs::is_regular_file(fs::path(text), ignored);
}

[[noreturn]] void throw_unknown(std::string_view what, std::string_view name,
                                std::string_view else_known) {
  std::vector<std::string> full;
  for (const FunctionProblem& problem : function_problems()) full.push_back(full_name(problem));
  throw_error(ErrorCode::not_found, "{}; or {}",
              unknown_name(what, name, {full.begin(), full.end()}), else_known);
}

/// The only one of a kind, when the text did not say which.
std::string only_name(const Plugin& plugin, std::string_view kind, std::string_view usual) {
  const auto names = plugin.names(kind);
  if (names.size() == 1) return std::string(names[0]);
  return std::string(usual);
}

void load_from_library(LoadedProblem& loaded, const PluginName& name) {
  const Plugin plugin(name.file);
  loaded.problem =
      plugin.problem(name.symbol.empty() ? only_name(plugin, "problem", "Problem") : name.symbol);
  loaded.name = fs::path(name.file).stem().string();
  // A library with one run function means it for its problems.
  const std::string run = only_name(plugin, "run", "run");
  if (plugin.find("run", run) != nullptr) loaded.run = plugin.run(run);
}

void load_from_file(LoadedProblem& loaded, const std::string& file) {
  // YAML 1.2 has JSON inside it, but errors are better from the parser that fits.
  const Json json = file.ends_with(".json") ? parse_json(read_file(file), file) : load_yaml(file);
  ProblemDocument document = read_problem_document(json, file);
  loaded.problem = std::move(document.problem);
  loaded.program = std::move(document.program);
  if (!loaded.program.empty())
    loaded.program[0] = absolute_program(loaded.program[0], fs::absolute(file).parent_path());
  loaded.name = document.name.empty() ? fs::path(file).stem().string() : document.name;
}

void take_python_run(LoadedProblem& loaded, const PythonName& name) {
  loaded.program = python_run_program(name);
  loaded.run = nullptr;
  loaded.python_run = name;
}

void load_only_problem(LoadedProblem& loaded, std::string_view text) {
  if (text.empty())
    throw_error(ErrorCode::invalid_argument,
                "no problem is given; name a built-in (benchmark.hps.polynome2), a YAML or JSON "
                "file, or libmy.so:Problem");
  if (const FunctionProblem* known = find_function_problem(text)) {
    loaded.problem = known->make();
    loaded.run = known->run;
    loaded.name = full_name(*known);
  } else if (const auto library = parse_plugin_name(text)) {
    load_from_library(loaded, *library);
  } else if (const auto python = parse_python_name(text)) {
    loaded.problem = load_python_problem(*python);
    take_python_run(loaded, {python->file, ""});
    loaded.name = fs::path(python->file).stem().string();
  } else if (is_file(text)) {
    load_from_file(loaded, std::string(text));
  } else if (text.ends_with(".yaml") || text.ends_with(".yml") || text.ends_with(".json")) {
    throw_error(ErrorCode::not_found, "problem '{}': there is no such file", text);
  } else {
    throw_unknown("problem", text, "a YAML or JSON file, or libmy.so:Problem");
  }
  loaded.objectives = loaded.problem.objectives();
}

/// Whether the first word is something that can be executed, here or on the PATH.
bool is_program(const std::string& word) {
  const auto executable = [](const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
  };
  if (word.find('/') != std::string::npos) return executable(word);
  const char* const path = ::getenv("PATH");
  std::string_view rest = path == nullptr ? "" : path;
  while (!rest.empty()) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    if (executable(fs::path(rest.substr(0, colon)) / word)) return true;
    rest.remove_prefix(std::min(colon + 1, rest.size()));
  }
  return false;
}

}  // namespace

void load_run(LoadedProblem& loaded, std::string_view text) {
  loaded.python_run.reset();
  if (const FunctionProblem* known = find_function_problem(text)) {
    loaded.run = known->run;
    loaded.program.clear();
    return;
  }
  if (const auto library = parse_plugin_name(text)) {
    const Plugin plugin(library->file);
    loaded.run =
        plugin.run(library->symbol.empty() ? only_name(plugin, "run", "run") : library->symbol);
    loaded.program.clear();
    return;
  }
  // A script that may be executed is a program, whatever language it is in.
  if (const auto python = parse_python_name(text);
      python && (!python->name.empty() || !is_program(python->file))) {
    take_python_run(loaded, *python);
    return;
  }
  std::vector<std::string> words = is_file(text) ? std::vector<std::string>{std::string(text)}
                                                 : split_words(text, "the run function");
  if (!words.empty() && words[0] == "--") words.erase(words.begin());
  if (words.empty()) throw_error(ErrorCode::invalid_argument, "the run function is empty");
  if (!is_program(words[0])) {
    if (is_file(words[0]))
      throw_error(ErrorCode::invalid_argument,
                  "run function '{}': the file may not be executed; chmod +x makes it a program",
                  words[0]);
    throw_unknown("run function", words[0], "a program, or libmy.so:run");
  }
  words[0] = absolute_program(words[0], fs::current_path());
  loaded.program = std::move(words);
  loaded.run = nullptr;
}

LoadedProblem load_problem(std::string_view problem, std::string_view run) {
  LoadedProblem loaded;
  load_only_problem(loaded, problem);
  if (!run.empty()) load_run(loaded, run);
  return loaded;
}

}  // namespace kolo::hps

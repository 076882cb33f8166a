// Where problems and run functions come from: built-in names, files, shared libraries, programs.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hps/problem/python_problem.h"
#include "kolo/hps/problem.h"
#include "kolo/hps/run.h"

namespace kolo::hps {

struct LoadedProblem {
  HpProblem problem;
  RunFunction run;                   ///< may be empty
  std::vector<std::string> program;  ///< words of a program that is the run function; empty = run
  std::optional<PythonName> python_run;  ///< which Python function `program` calls, if any
  std::size_t objectives = 1;
  std::string name;  ///< "benchmark.hps.polynome2", or of the file without its ending
};

/// `problem`: a built-in name ("benchmark.hps.polynome2"), a YAML or JSON file, or
/// "libmy.so:Problem" (also "libmy.so", whose only problem is meant), or "my.py:Problem".
/// `run`: the same names (a built-in of either room, "libmy.so:run", "my.py:run"), or a program:
/// the path of an executable, with further words behind it in which {lr} stands for a value. Empty:
/// the run function that belongs to the problem, if there is one.
/// Throws not_found (listing the known names), invalid_argument, unsupported.
LoadedProblem load_problem(std::string_view problem, std::string_view run);

/// The run function alone, into `loaded`. Not for an empty text.
void load_run(LoadedProblem& loaded, std::string_view run);

}  // namespace kolo::hps

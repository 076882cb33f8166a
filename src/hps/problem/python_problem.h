// Problems and run functions in Python files: "my.py:Problem", "my.py:run".
//
// kolo does not contain an interpreter. The package kolo of Python writes the problem as JSON, and
// each evaluation is a program of it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/hps/problem.h"

namespace kolo::hps {

struct PythonName {
  std::string file;  ///< absolute
  std::string name;  ///< "" = the usual one
};
/// None if the text does not name a Python file.
std::optional<PythonName> parse_python_name(std::string_view text);

/// Throws not_found (no file, no interpreter), invalid_argument with what Python said.
HpProblem load_python_problem(const PythonName& name);
/// Words of the program that evaluates one configuration with this function.
std::vector<std::string> python_run_program(const PythonName& name);
/// Reads the file without running it, since what it imports may be installed only where evaluations
/// run. Throws not_found if there is no file or no such function in it.
void check_python_run(const PythonName& name);

}  // namespace kolo::hps

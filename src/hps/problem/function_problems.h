// The functions that DeepHyper's searches are tried on, as problems of kolo. They are known as
// minimisation problems; searches maximise, so a run answers the negative.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/hps/problem.h"
#include "kolo/hps/run.h"

namespace kolo::hps {

struct FunctionProblem {
  std::string_view name;     ///< "polynome2", after "benchmark.hps."
  std::string_view summary;  ///< one line
  HpProblem (*make)();
  RunResult (*run)(RunningJob&);
  /// The best objective there is, and a configuration that has it; of several objectives: none.
  std::optional<double> optimum;
  Value best;
};

/// All of them.
std::span<const FunctionProblem> function_problems();

/// By name; "deephyper." in front, "benchmark.hps." in front and ".Problem" or ".run" behind are
/// understood. Null when there is none of that name.
const FunctionProblem* find_function_problem(std::string_view name);

/// "benchmark.hps.polynome2".
std::string full_name(const FunctionProblem& problem);

}  // namespace kolo::hps

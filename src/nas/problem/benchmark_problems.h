// The architecture problems that come with kolo; their definitions are DeepHyper's where it has
// them.
#pragma once

#include <string>
#include <string_view>

#include "base/registry.h"
#include "kolo/nas/problem.h"

namespace kolo::nas {

using MakeProblem = NaProblem (*)();

/// Names as after "benchmark.nas.".
extern const Registry<MakeProblem> kBenchmarkProblems;

/// "linear_reg" from "deephyper.benchmark.nas.linearReg.Problem", "benchmark.nas.linear_reg",
/// "linearReg" …
std::string benchmark_name(std::string_view name);

}  // namespace kolo::nas

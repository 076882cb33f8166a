// Problems as files: a space, and what belongs to it.
//
//   space: {lr: {loguniform: [0.0001, 0.1]}, layers: {integer: [1, 8]}}
//   program: [./train, --lr, "{lr}", --layers, "{layers}"]
//   starting_points: [{lr: 0.01}]
//
// The keys of a space with sections (parameters, conditions, forbidden) may stand beside program
// instead of `space`; a space alone, as docs/search.md describes it, is a problem too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "kolo/hps/problem.h"

namespace kolo::hps {

struct ProblemDocument {
  HpProblem problem;
  std::vector<std::string> program;  ///< words; empty = the file names none
  std::string name;                  ///< "" = the file gives none
};

/// Throws invalid_argument naming `origin`, path and rule.
ProblemDocument read_problem_document(const Json& json, std::string_view origin);

}  // namespace kolo::hps

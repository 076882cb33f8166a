// The compiled form of a Spec: its leaves numbered, ready to make configurations.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kolo/search/space.h"

namespace kolo::search {

struct Node {
  enum class Kind { constant, parameter, function, dict, list };

  Kind kind = Kind::constant;
  std::string path;
  Value constant;
  std::size_t parameter = 0;
  SampleFunction function;
  std::string text;                             // of a function that was written as an expression
  std::vector<SampleFunction> entry_functions;  // of a grid with functions; empty ones = constant
  std::vector<std::string> keys;                // of a dict, sorted
  std::vector<Node> children;
};

/// Appends the parameters found to `parameters`. Throws invalid_argument naming path and rule.
Node compile_tree(const Spec& spec, const std::string& path, std::vector<Parameter>& parameters);

bool contains_functions(const Node& node);

/// The paths of parameters and functions, in the order of a walk.
std::vector<std::string> varied_paths(const Node& node);

/// Whether something lies at the path or below it.
bool contains_path(const Node& node, std::string_view path);

/// Says whether a path is switched off by a condition.
using IsAbsent = std::function<bool(const Node& node)>;

/// Makes a configuration. Without `random`, functions are left out.
/// Throws failed_precondition naming functions that wait for each other.
Value make_config(const Node& root, std::span<const Parameter> parameters, const Point& point,
                  const IsAbsent& is_absent, Random* random);

}  // namespace kolo::search

// A space as it is written, before it is checked as a whole: what JSON and YAML files hold, and
// what a problem gathers piece by piece.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "kolo/search/space.h"

namespace kolo::search {

struct SpaceDocument {
  Spec spec{Spec::Dict()};
  std::vector<std::pair<std::string, Clause>> conditions;
  std::vector<Clause> forbidden;
  std::vector<Value> starting_points;

  /// Throws invalid_argument naming the path and the rule.
  [[nodiscard]] std::shared_ptr<const Space> build(ConstraintFunction constraint = {}) const;
};

/// Reads the format of docs/search.md. Throws invalid_argument naming path and rule.
SpaceDocument read_space_document(const Json& json);

/// The same format, always with `kolo_space` and sections. Throws unsupported where the space has
/// functions of C++, naming the path.
Json write_space_document(const SpaceDocument& document);

}  // namespace kolo::search

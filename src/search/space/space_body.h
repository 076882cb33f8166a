// The private part of Space.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "kolo/search/space.h"
#include "search/space/compiled_clause.h"
#include "search/space/tree.h"

namespace kolo::search {

struct Space::Body {
  struct Condition {
    std::string path;
    std::string text;
    CompiledClause clause;
  };
  struct Forbidden {
    std::string text;
    CompiledClause clause;
  };

  Node root;
  std::vector<Parameter> parameters;
  std::map<std::string, std::size_t, std::less<>> index;
  std::vector<Condition> conditions;
  std::vector<std::vector<std::size_t>> conditions_of;  // per parameter, places in `conditions`
  std::vector<std::size_t> order;
  std::vector<Forbidden> forbidden;
  ConstraintFunction constraint;
  std::vector<Value> starting_points;
  bool has_functions = false;

  [[nodiscard]] bool is_active(std::size_t parameter, const Point& point) const {
    for (const std::size_t condition : conditions_of[parameter])
      if (!conditions[condition].clause.holds(point)) return false;
    return true;
  }
  [[nodiscard]] Value config(const Point& point, Random* random) const;
  /// The place of the forbidden clause that holds, the number of them if the constraint function
  /// says no, or nothing.
  [[nodiscard]] std::optional<std::size_t> refusal(const Point& point) const;
};

struct Space::Builder::Draft {
  Spec spec{Spec::Dict()};
  std::vector<std::pair<std::string, Clause>> conditions;
  std::vector<Clause> forbidden;
  ConstraintFunction constraint;
  std::vector<Value> starting_points;
};

}  // namespace kolo::search

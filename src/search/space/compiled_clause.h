// A clause in terms of entries of points, fast to evaluate.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "kolo/search/clause.h"
#include "kolo/search/space.h"

namespace kolo::search {

/// Index and parameter of a path; throws when there is none.
using ParameterLookup =
    std::function<std::pair<std::size_t, const Parameter*>(std::string_view path)>;

class CompiledClause {
 public:
  /// Throws invalid_argument naming the path and the rule.
  CompiledClause(const Clause& clause, const ParameterLookup& lookup);

  [[nodiscard]] bool holds(const Point& point) const;
  /// Appends the parameters it speaks of.
  void collect(std::vector<std::size_t>& parameters) const;

 private:
  [[nodiscard]] bool is_same(double left, double right) const;

  Clause::Kind kind_;
  std::size_t parameter_ = 0;
  std::size_t other_ = 0;
  std::vector<double> entries_;
  std::shared_ptr<const std::vector<Value>> left_choices_, right_choices_;  // of `same`
  std::vector<CompiledClause> clauses_;
};

}  // namespace kolo::search

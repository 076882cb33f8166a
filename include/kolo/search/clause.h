// Statements about parameters, for conditions ("momentum exists if optimizer is sgd") and for
// forbidden combinations.
#pragma once

#include <string>
#include <vector>

#include "kolo/search/value.h"

namespace kolo::search {

/// A statement about an inactive parameter is false, whatever it says.
struct Clause {
  enum class Kind { equals, not_equals, less, greater, in, same, all_of, any_of };
  Kind kind = Kind::equals;
  std::string path;             ///< the parameter spoken of
  std::vector<Value> values;    ///< one, or for `in` several
  std::string other;            ///< for `same`: the other parameter
  std::vector<Clause> clauses;  ///< for all_of and any_of

  /// "optimizer == \"sgd\" and layers > 2"
  [[nodiscard]] std::string to_string() const;
};

Clause equals(std::string path, Value value);
Clause not_equals(std::string path, Value value);
/// Numbers and ordinals; an ordinal is compared by its place in the order.
Clause less(std::string path, Value value);
Clause greater(std::string path, Value value);
Clause in(std::string path, std::vector<Value> values);
/// Two parameters have the same value.
Clause same(std::string path, std::string other);
Clause all_of(std::vector<Clause> clauses);
Clause any_of(std::vector<Clause> clauses);

}  // namespace kolo::search

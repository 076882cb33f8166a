// Conditions on the rows of a table: "lr < 0.01 and kind == sgd".
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kolo/tune/analysis.h"

namespace kolo::tune {

/// The place of a column, which may be named without "config/". Throws invalid_argument, suggesting
/// a near name.
std::size_t column_of(std::span<const std::string> columns, const std::string& name);

/// "lr < 0.01": what is asked of the value in one column.
class Condition {
 public:
  /// `op` is one of ==, !=, <, <=, > and >=; `number` is what `wanted` says, if it is one.
  Condition(std::size_t column, std::string op, std::string wanted, std::optional<double> number)
      : column_(column), op_(std::move(op)), wanted_(std::move(wanted)), number_(number) {}

  [[nodiscard]] std::size_t column() const noexcept { return column_; }
  /// False where there is no value.
  [[nodiscard]] bool holds(const Value& value) const;

 private:
  std::size_t column_ = 0;
  std::string op_, wanted_;
  std::optional<double> number_;
};

/// Conditions are joined by `and`; each compares a column with a number or a text by ==, =, !=, <,
/// <=, > or >=. `numbers_alone` tells whether a column has nothing but numbers. Throws
/// invalid_argument naming what cannot be read.
std::vector<Condition> parse_conditions(const std::string& text,
                                        std::span<const std::string> columns,
                                        const std::function<bool(std::size_t)>& numbers_alone);

/// Removes the rows for which a condition does not hold, or that have no value in its column.
void keep_rows(Table& table, const std::string& conditions);

}  // namespace kolo::tune

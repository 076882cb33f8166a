// Conditions on the rows of a table: "lr < 0.01 and kind == sgd".
#pragma once

#include <string>
#include <vector>

#include "kolo/tune/analysis.h"

namespace kolo::tune {

/// The place of a column, which may be named without "config/". Throws invalid_argument, suggesting
/// a near name.
std::size_t column_of(const Table& table, const std::string& name);

/// Removes the rows for which a condition does not hold. Conditions are joined by `and`; each
/// compares a column with a number or a text by ==, =, !=, <, <=, > or >=. Rows without a value in
/// the column are removed. Throws invalid_argument naming what cannot be read.
void keep_rows(Table& table, const std::string& conditions);

}  // namespace kolo::tune

// The trials of a study as a table: what `kolo trials` prints and the dashboard shows.
#pragma once

#include <string>
#include <vector>

#include "kolo/tune/analysis.h"

namespace kolo::tune {

/// A row per trial, by number. What one wants to see first comes first: id, status, metrics,
/// parameters.
[[nodiscard]] Table trials_table(const Analysis& analysis);

/// These columns alone, in this order. Throws invalid_argument, as column_of() does.
void keep_columns(Table& table, const std::vector<std::string>& names);

/// By the first column, then the next. Rows without a value come last, in either direction.
void sort_rows(Table& table, const std::vector<std::string>& columns, bool descending);

}  // namespace kolo::tune

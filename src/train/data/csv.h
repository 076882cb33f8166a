// Tables of numbers as text, one row a line.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kolo::train {

struct CsvNumbers {
  std::vector<std::string> names;  ///< of the columns, when there is a header line
  std::size_t rows = 0, columns = 0;
  std::vector<double> values;  ///< row by row
};

/// Empty lines are skipped; spaces around numbers are allowed. Throws corruption,
/// "ORIGIN:LINE: column 3: 'abc' is not a number", also for rows of different length.
CsvNumbers parse_csv(std::string_view text, char separator, bool header, std::string_view origin);

}  // namespace kolo::train

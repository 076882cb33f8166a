// Numbers from the last columns of gzipped CSV files.
#pragma once

#include <string>
#include <vector>

namespace bench {

/// The columns from `first` on, of all rows but the heading. Throws kolo::Error (io, corruption).
std::vector<std::vector<double>> read_csv_columns(const std::string& path, std::size_t first);

}  // namespace bench

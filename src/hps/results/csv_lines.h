// Lines of RFC 4180 without line breaks inside fields.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo::hps {

/// Quoted where it has to be.
std::string quoted_field(std::string_view field);
/// Throws invalid_argument for a quote that is not closed.
std::vector<std::string> split_csv_line(std::string_view line);

}  // namespace kolo::hps

// data/digits.csv.gz as part of the library; the definition is written by CMake.
#pragma once

#include <string_view>

namespace kolo::train {

std::string_view digits_file();

}  // namespace kolo::train

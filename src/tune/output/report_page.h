// The page around a study's data: style, skeleton and script.
#pragma once

#include <string_view>

namespace kolo::tune {

/// `{{title}}` and `{{data}}` are to be filled in.
std::string_view report_page();

}  // namespace kolo::tune

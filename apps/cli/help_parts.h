// What the help, the manual in Markdown and the pages for man(1) say alike about a table of
// options.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/option_set.h"

namespace kolo::cli {

/// "-np, -n, --num-proc N".
std::string names_of(const OptionText& text);
/// The help text of a row, then what else there is to know: default, variables.
std::string phrase_of(const OptionSet::Row& row);
/// Headings in the order in which they first come, those of arguments before the others.
std::vector<std::string_view> headings_of(const OptionSet& set);

}  // namespace kolo::cli

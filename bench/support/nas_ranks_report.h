// What came out of nas_ranks_study: a table, a plot, and lines of comparison.
#pragma once

#include <string>

namespace bench {

/// Reads lines of JSON. Prints the table and the RATIO lines; writes them as Markdown and SVG where
/// names are given. Returns an exit status.
int report_ranks(const std::string& file, const std::string& markdown, const std::string& svg);

}  // namespace bench

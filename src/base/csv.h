// Comma-separated values (RFC 4180).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kolo {

/// One field, in quotes when it holds a comma, a quote or a line break.
std::string csv_quoted(std::string_view field);

/// The fields, quoted where they must be, with a line feed at the end.
std::string csv_line(std::span<const std::string> fields);

/// The lines of a text, without their line feeds. A line feed inside quotes does not end a line.
std::vector<std::string_view> csv_lines(std::string_view text);

/// The text up to the line feed of its last whole line: a writer may have been killed in the middle
/// of one.
std::string_view whole_csv_lines(std::string_view text);

/// Without the mark that some programs begin a file with.
std::string_view without_byte_order_mark(std::string_view text);

/// The fields of one line. Throws invalid_argument for a quote that is not closed.
std::vector<std::string> split_csv_line(std::string_view line);

}  // namespace kolo

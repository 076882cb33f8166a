// Tables of text for people.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kolo {

struct TextTableStyle {
  std::size_t width = 0;   ///< lines are cut to so many letters; 0 = as long as they are
  std::size_t indent = 0;  ///< blanks before the first column
};

/// One line for each row: columns as wide as their widest cell, two blanks between them, none at
/// the end of a line. A letter of UTF-8 counts as one column. Control characters are shown as
/// blanks (base/utf8.h).
std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       const TextTableStyle& style = {});

/// Five significant digits.
std::string short_number(double value);

/// Letters of a UTF-8 text.
std::size_t letters_of(std::string_view text);

/// At most so many letters of a text; "…" stands for what is left out.
std::string shortened(const std::string& text, std::size_t letters);

}  // namespace kolo

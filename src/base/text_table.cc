#include "base/text_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace kolo {
namespace {

bool begins_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

/// The first `letters` of a text.
std::string cut(const std::string& text, std::size_t letters) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins_letter(text[at]) && letters-- == 0) break;
  return text.substr(0, at);
}

}  // namespace

std::size_t letters_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_letter));
}

std::string text_table(const std::vector<std::vector<std::string>>& rows,
                       const TextTableStyle& style) {
  auto shown = rows;
  std::vector<std::size_t> widths;
  for (auto& row : shown) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      widths[i] = std::max(widths[i], letters_of(row[i]));
    }
  }
  std::string text;
  for (const auto& row : shown) {
    std::string line(style.indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i)
      line += (i > 0 ? "  " : "") + row[i] + std::string(widths[i] - letters_of(row[i]), ' ');
    line.erase(line.find_last_not_of(' ') + 1);
    text += (style.width > 0 ? shortened(line, style.width) : line) + "\n";
  }
  return text;
}

std::string shortened(const std::string& text, std::size_t letters) {
  if (letters_of(text) <= letters) return text;
  return letters == 0 ? "" : cut(text, letters - 1) + "…";
}

std::string short_number(double value) { return fmt::format("{:.5g}", value); }

}  // namespace kolo

#include "train/data/csv.h"

#include <charconv>

#include "base/errors.h"

namespace kolo::train {
namespace {

std::string_view trim(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view unquote(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"')
    return text.substr(1, text.size() - 2);
  return text;
}

/// Calls each(column, field) for the fields of a line.
template <class Each>
std::size_t for_each_field(std::string_view line, char separator, Each each) {
  std::size_t column = 0;
  for (std::size_t start = 0;; ++column) {
    const std::size_t end = line.find(separator, start);
    each(column, unquote(trim(line.substr(start, end - start))));
    if (end == std::string_view::npos) return column + 1;
    start = end + 1;
  }
}

double to_number(std::string_view field, std::string_view origin, std::size_t line,
                 std::size_t column) {
  double value = 0;
  std::string_view digits = field.starts_with('+') ? field.substr(1) : field;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
    throw_error(ErrorCode::corruption, "{}:{}: column {}: '{}' is not a number", origin, line,
                column + 1, field);
  return value;
}

}  // namespace

CsvNumbers parse_csv(std::string_view text, char separator, bool header, std::string_view origin) {
  CsvNumbers table;
  std::size_t line_number = 0;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view line = text.substr(start, end - start);
    start = end + 1;
    ++line_number;
    if (trim(line).empty()) continue;
    std::size_t fields = 0;
    if (header && table.names.empty()) {
      fields = for_each_field(line, separator, [&](std::size_t, std::string_view field) {
        table.names.emplace_back(field);
      });
    } else {
      fields = for_each_field(line, separator, [&](std::size_t column, std::string_view field) {
        table.values.push_back(to_number(field, origin, line_number, column));
      });
      ++table.rows;
    }
    if (table.columns == 0) table.columns = fields;
    if (fields != table.columns)
      throw_error(ErrorCode::corruption, "{}:{}: {} columns where the lines before have {}", origin,
                  line_number, fields, table.columns);
  }
  if (table.rows == 0) throw_error(ErrorCode::corruption, "{}: the file has no rows", origin);
  return table;
}

}  // namespace kolo::train

#include "base/csv.h"

#include "base/errors.h"

namespace kolo {

std::string csv_quoted(std::string_view field) {
  if (field.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(field);
  std::string quoted = "\"";
  for (const char c : field) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

std::string csv_line(std::span<const std::string> fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != fields.data()) line += ',';
    line += csv_quoted(field);
  }
  return line + '\n';
}

std::vector<std::string_view> csv_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  std::size_t start = 0;
  // Quotes count where split_csv_line() takes them for such: at the beginning of a field.
  bool inside = false, is_empty = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (inside) {
      inside = c != '"' || text.substr(i + 1).starts_with('"');
      if (inside) is_empty = false;
      if (inside && c == '"') ++i;
    } else if (c == '"' && is_empty) {
      inside = true;
    } else if (c == '\n') {
      lines.push_back(text.substr(start, i - start));
      start = i + 1;
      is_empty = true;
    } else if (c != '\r') {
      is_empty = c == ',';
    }
  }
  if (start < text.size()) lines.push_back(text.substr(start));
  return lines;
}

std::string_view whole_csv_lines(std::string_view text) {
  const auto lines = csv_lines(text);
  const bool is_torn =
      !lines.empty() && lines.back().data() + lines.back().size() == text.data() + text.size();
  if (is_torn) text.remove_suffix(lines.back().size());
  return text;
}

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xEF\xBB\xBF";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

std::vector<std::string> split_csv_line(std::string_view line) {
  std::vector<std::string> fields(1);
  bool inside = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (inside) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        inside = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      inside = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (inside) throw_error(ErrorCode::invalid_argument, "a quote is not closed");
  return fields;
}

}  // namespace kolo

#include "quality/csv.h"

#include <zlib.h>

#include <charconv>
#include <string_view>
#include <utility>

#include "base/errors.h"

namespace bench {
namespace {

std::string read_gzip(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) kolo::throw_errno("cannot open {}", path);
  std::string text;
  char buffer[1 << 16];
  int got = 0;
  while ((got = gzread(file, buffer, sizeof buffer)) > 0)
    text.append(buffer, static_cast<std::size_t>(got));
  gzclose(file);
  if (got < 0) kolo::throw_error(kolo::ErrorCode::corruption, "{} is not a gzip file", path);
  return text;
}

}  // namespace

std::vector<std::vector<double>> read_csv_columns(const std::string& path, std::size_t first) {
  std::string text = read_gzip(path);
  std::vector<std::vector<double>> rows;
  std::string_view rest = text;
  bool heading = true;
  while (!rest.empty()) {
    auto end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    if (std::exchange(heading, false) || line.empty()) continue;
    std::vector<double> row;
    for (std::size_t column = 0;; ++column) {
      auto comma = line.find(',');
      std::string_view cell = line.substr(0, comma);
      if (column >= first) {
        double number = 0;
        auto [stop, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
        if (error != std::errc() || stop != cell.data() + cell.size())
          kolo::throw_error(kolo::ErrorCode::corruption, "{}:{}: '{}' is not a number", path,
                            rows.size() + 2, cell);
        row.push_back(number);
      }
      if (comma == std::string_view::npos) break;
      line = line.substr(comma + 1);
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace bench

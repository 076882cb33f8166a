#include "hps/results/results_csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/csv.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/json.h"
#include "base/text_table.h"
#include "search/space/json_value.h"
#include "tune/protocol/value_text.h"

namespace kolo::hps {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kParameter = "p:", kMetadata = "m:", kOther = "m:other";
constexpr const char* kError = "error";
/// Columns behind "m:" that are kolo's own.
constexpr std::string_view kOwnMetadata[] = {kError, "other", "timestamp_submit",
                                             "timestamp_gather"};

bool is_number(const std::string& text, double& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

/// What a column of a file is for.
struct Column {
  enum class Kind { parameter, objective, job_id, status, submit, gather, metadata, ignored };
  Kind kind = Kind::ignored;
  std::string name{};
};

Column column_of(const std::string& title, bool older) {
  using Kind = Column::Kind;
  if (title.starts_with("objective")) return {Kind::objective, title};
  if (title == "job_id" || (older && title == "id")) return {Kind::job_id, title};
  if (title == "job_status") return {Kind::status, title};
  if (title == "m:timestamp_submit") return {Kind::submit, title};
  if (title == "m:timestamp_gather" || (older && title == "elapsed_sec"))
    return {Kind::gather, title};
  if (title.starts_with(kMetadata)) return {Kind::metadata, title.substr(kMetadata.size())};
  if (title.starts_with(kParameter)) return {Kind::parameter, title.substr(kParameter.size())};
  return older ? Column{Kind::parameter, title} : Column{Kind::ignored, title};
}

void take_field(ResultRow& row, const Column& column, const std::string& field) {
  using Kind = Column::Kind;
  double number = 0;
  switch (column.kind) {
    case Kind::parameter:
      if (Value value = value_of_field(field); !value.is_nothing())
        row.parameters.as_dict().insert_or_assign(column.name, std::move(value));
      return;
    case Kind::objective:
      if (is_number(field, number) && std::isfinite(number))
        row.objectives.push_back(number);
      else
        row.failure = field.starts_with('F') ? field : "F_" + field;
      return;
    case Kind::job_id: row.job_id = field; return;
    case Kind::status: row.status = field; return;
    case Kind::submit:
    case Kind::gather:
      if (is_number(field, number) && std::isfinite(number))
        (column.kind == Kind::submit ? row.submitted : row.gathered) = number;
      return;
    case Kind::metadata:
      if (kMetadata.size() + column.name.size() == kOther.size() && column.name == "other") {
        if (const Value more = value_of_field(field); more.is_dict())
          for (const auto& [name, value] : more.as_dict()) row.metadata.emplace(name, value);
      } else if (!field.empty()) {
        row.metadata.emplace(column.name, value_of_field(field));
      }
      return;
    case Kind::ignored: return;
  }
}

/// Line feeds and the like as JSON writes them: each name of a column is one word of one line.
std::string with_visible_controls(const std::string& name) {
  const auto is_control = [](unsigned char c) { return c < 0x20; };
  if (std::none_of(name.begin(), name.end(), is_control)) return name;
  const std::string quoted = json_text(Json(name));
  return quoted.substr(1, quoted.size() - 2);
}

/// The message of a failure. Other programs may have a metric of this name where nothing failed.
void take_error(ResultRow& row) {
  const auto found = row.metadata.find(kError);
  if (!row.failed() || found == row.metadata.end()) return;
  row.error = found->second.is_string() ? found->second.as_string() : field_of_value(found->second);
  row.metadata.erase(found);
}

}  // namespace

std::string metadata_name(const std::string& metric) {
  const std::string_view bare =
      std::string_view(metric).substr(0, metric.find_last_not_of('_') + 1);
  const bool is_taken =
      std::find(std::begin(kOwnMetadata), std::end(kOwnMetadata), bare) != std::end(kOwnMetadata);
  return with_visible_controls(is_taken ? metric + "_" : metric);
}

std::string field_of_value(const Value& value) {
  if (value.is_nothing()) return {};
  if (!value.is_string()) return tune::encode(value);
  const std::string& text = value.as_string();
  // What would read as something else, or break the line, is written as JSON.
  const bool plain = !text.empty() && value_of_field(text) == value &&
                     std::none_of(text.begin(), text.end(),
                                  [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  return plain ? text : tune::encode(value);
}

Value value_of_field(const std::string& field) {
  if (field.empty()) return {};
  if (field == "True" || field == "true") return true;
  if (field == "False" || field == "false") return false;
  std::int64_t whole = 0;
  const char* const end = field.data() + field.size();
  if (const auto read = std::from_chars(field.data(), end, whole);
      read.ec == std::errc() && read.ptr == end)
    return whole;
  double number = 0;
  if (is_number(field, number)) return std::isnan(number) ? Value() : Value(number);
  if (field.front() == '[' || field.front() == '{' || field.front() == '"') {
    try {
      return tune::decode(field, "a field");
    } catch (const Error&) {
      // A text that only looks like JSON.
    }
  }
  return field;
}

Value flat_config(const Value& nested) {
  // Lists stay whole: an architecture is one column.
  return Value(tune::flatten(nested));
}

Value nested_config(const Value& flat) {
  Value nested{Value::Dict{}};
  for (const auto& [path, value] : flat.as_dict()) {
    if (std::count(path.begin(), path.end(), '/') >= search::kDeepestValue)
      throw_error(ErrorCode::invalid_argument,
                  "the name '{}' has {} or more '/', and each stands for a dictionary; give it a "
                  "shorter name",
                  shortened(path, 40), search::kDeepestValue);
    Value* place = &nested;
    for (std::size_t start = 0; start <= path.size();) {
      const auto slash = std::min(path.find('/', start), path.size());
      if (!place->is_dict()) *place = Value(Value::Dict{});
      place = &place->as_dict()[path.substr(start, slash - start)];
      start = slash + 1;
    }
    *place = value;
  }
  return nested;
}

ResultsTable read_results(const fs::path& path) {
  const fs::path file = fs::is_directory(path) ? path / "results.csv" : path;
  const std::string content = read_file(file);
  const std::string_view text = without_byte_order_mark(content), whole = whole_csv_lines(text);
  ResultsTable table;
  table.torn = !whole.empty() && whole.size() < text.size();
  std::vector<Column> columns;
  std::int64_t line_number = 0, next_line = 1;
  for (const std::string_view line : csv_lines(whole.empty() ? text : whole)) {
    line_number = next_line;
    next_line += 1 + std::count(line.begin(), line.end(), '\n');
    if (line.empty() || line == "\r") continue;
    std::vector<std::string> fields;
    try {
      fields = split_csv_line(line);
    } catch (const Error& error) {
      throw_error(ErrorCode::corruption, "{}:{}: {}", file.string(), line_number, error.message());
    }
    if (columns.empty()) {
      table.older = std::none_of(fields.begin(), fields.end(), [](const std::string& title) {
        return title.starts_with(kParameter);
      });
      table.objectives = 0;
      for (const auto& title : fields) {
        columns.push_back(column_of(title, table.older));
        const auto& column = columns.back();
        if (column.kind == Column::Kind::objective) ++table.objectives;
        if (column.kind == Column::Kind::parameter) table.parameters.push_back(column.name);
        if (column.kind == Column::Kind::metadata) table.metadata.push_back(column.name);
      }
      if (table.objectives == 0)
        throw_error(ErrorCode::corruption, "{}:1: no column 'objective'; is it a results.csv?",
                    file.string());
      continue;
    }
    if (fields.size() != columns.size())
      throw_error(ErrorCode::corruption, "{}:{}: {} fields where the first line names {}",
                  file.string(), line_number, fields.size(), columns.size());
    ResultRow row;
    for (std::size_t i = 0; i < fields.size(); ++i) take_field(row, columns[i], fields[i]);
    if (!row.failure.empty()) row.objectives.clear();
    take_error(row);
    if (row.job_id.empty()) row.job_id = std::to_string(table.rows.size());
    table.rows.push_back(std::move(row));
  }
  if (columns.empty()) throw_error(ErrorCode::corruption, "{}: the file is empty", file.string());
  return table;
}

}  // namespace kolo::hps

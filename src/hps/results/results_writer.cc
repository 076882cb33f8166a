// Writes results.csv: a line per evaluation, appended. A metric that no line had before is a new
// column at the end, for which the file is written anew and put in the place of the old one;
// whoever has the old one open notices it under the lock.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/csv.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "hps/results/results_csv.h"
#include "kolo/hps/run.h"

namespace kolo::hps {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kParameterColumn = "p:", kMetadataColumn = "m:";
constexpr const char* kErrorColumn = "m:error";
/// For metrics beyond the most columns that a file gets.
constexpr const char* kRestColumn = "m:other";
constexpr std::size_t kMostColumns = 200;
constexpr const char* kTimeColumns[] = {"m:timestamp_submit", "m:timestamp_gather"};

std::vector<std::string> fixed_columns(const std::vector<std::string>& parameters,
                                       std::size_t objectives) {
  std::vector<std::string> columns;
  for (const auto& name : parameters) columns.push_back(std::string(kParameterColumn) + name);
  for (std::size_t i = 0; i < objectives; ++i) columns.push_back(objective_name(i, objectives));
  columns.insert(columns.end(), {"job_id", "job_status"});
  columns.insert(columns.end(), std::begin(kTimeColumns), std::end(kTimeColumns));
  return columns;
}

}  // namespace

/// As long as it lives no other process appends; the file open is the one at the path.
class ResultsWriter::Lock {
 public:
  explicit Lock(ResultsWriter& writer) : writer_(writer) {
    for (;;) {
      while (::flock(writer_.file_.get(), LOCK_EX) != 0 && errno == EINTR) {
      }
      struct stat open {
      }, there{};
      if (::fstat(writer_.file_.get(), &open) != 0)
        throw_errno("cannot look at {}", writer_.path_.string());
      if (::stat(writer_.path_.c_str(), &there) == 0 && open.st_ino == there.st_ino) return;
      writer_.open();  // closing releases the lock
      writer_.read_columns();
    }
  }
  ~Lock() { ::flock(writer_.file_.get(), LOCK_UN); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  ResultsWriter& writer_;
};

ResultsWriter::ResultsWriter(fs::path path, const std::vector<std::string>& parameters,
                             std::size_t objectives, const std::vector<std::string>& metadata)
    : path_(std::move(path)), fixed_(fixed_columns(parameters, objectives)) {
  open();
  const Lock lock(*this);
  const std::string text = read_file(path_);
  const auto whole = whole_csv_lines(text).size();
  if (whole < text.size()) keep_torn(text.substr(whole));
  if (whole < text.size() && ::ftruncate(file_.get(), static_cast<off_t>(whole)) != 0)
    throw_errno("cannot cut off the torn last line of {}", path_.string());
  if (whole == 0) {
    columns_ = fixed_;
    for (const auto& name : metadata) columns_.push_back(std::string(kMetadataColumn) + name);
    columns_.insert(columns_.end(), {kErrorColumn, kRestColumn});
    write_all(file_.get(), csv_line(columns_), path_.string());
    return;
  }
  read_columns();
  for (const auto& row : read_results(path_).rows) known_.insert(row.job_id);
}

/// A quote that is not closed makes one line of all that follow it, which are not to be lost.
void ResultsWriter::keep_torn(const std::string& lines) const {
  if (lines.find('\n') == std::string::npos) return;
  const fs::path place = path_.parent_path() / kTornResults;
  write_file_atomically(place, (fs::exists(place) ? read_file(place) : "") + lines);
  log::warning(
      "{}: a quote is not closed; what follows the last whole line, {} bytes, is now in {}",
      path_.string(), lines.size(), place.string());
}

void ResultsWriter::open() {
  file_ = Fd(::open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!file_.valid()) throw_errno("cannot open {}", path_.string());
}

void ResultsWriter::read_columns() {
  const std::string text = read_file(path_);
  const auto lines = csv_lines(without_byte_order_mark(text));
  columns_ = lines.empty() ? std::vector<std::string>() : split_csv_line(lines.front());
  if (columns_.size() < fixed_.size() ||
      !std::equal(fixed_.begin(), fixed_.end(), columns_.begin()))
    throw_error(ErrorCode::failed_precondition,
                "{} has other columns than this search writes; choose another --log-dir",
                path_.string());
}

bool ResultsWriter::has_column(const std::string& column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

void ResultsWriter::add_columns(const ResultRow& row) {
  std::vector<std::string> added;
  for (const auto& [name, value] : row.metadata) {
    std::string column = std::string(kMetadataColumn) + name;
    if (columns_.size() + added.size() < kMostColumns && !has_column(column))
      added.push_back(std::move(column));
  }
  if (added.empty()) return;
  const std::string text = read_file(path_);
  const std::string empty_fields(added.size(), ',');
  columns_.insert(columns_.end(), added.begin(), added.end());
  std::string wider = csv_line(columns_);
  auto lines = csv_lines(text);
  lines.erase(lines.begin());
  for (const std::string_view line : lines)
    if (!line.empty() && line != "\r") wider.append(line).append(empty_fields).append("\n");
  write_file_atomically(path_, wider);
}

std::string ResultsWriter::line_of(const ResultRow& row) const {
  std::vector<std::string> fields;
  std::size_t objective = 0;
  const auto field_in = [](const auto& values, const std::string& name) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : field_of_value(found->second);
  };
  for (const auto& column : columns_) {
    if (column.starts_with(kParameterColumn)) {
      fields.push_back(field_in(row.parameters.as_dict(), column.substr(kParameterColumn.size())));
    } else if (column == "job_id") {
      fields.push_back(row.job_id);
    } else if (column == "job_status") {
      fields.push_back(row.status);
    } else if (column == kTimeColumns[0] || column == kTimeColumns[1]) {
      fields.push_back(
          fmt::format("{:.6f}", column == kTimeColumns[0] ? row.submitted : row.gathered));
    } else if (column == kRestColumn) {
      Value::Dict rest;
      for (const auto& [name, value] : row.metadata)
        if (!has_column(std::string(kMetadataColumn) + name)) rest.emplace(name, value);
      fields.push_back(rest.empty() ? "" : field_of_value(Value(std::move(rest))));
    } else if (column == kErrorColumn && !row.error.empty()) {
      fields.push_back(field_of_value(Value(row.error)));
    } else if (column.starts_with(kMetadataColumn)) {
      fields.push_back(field_in(row.metadata, column.substr(kMetadataColumn.size())));
    } else {
      fields.push_back(row.failed() ? row.failure : field_of_value(row.objectives.at(objective++)));
    }
  }
  return csv_line(fields);
}

void ResultsWriter::append(const ResultRow& row) {
  {
    const Lock lock(*this);
    add_columns(row);
  }
  const Lock lock(*this);  // of the file that is there now
  struct stat before {};
  if (::fstat(file_.get(), &before) != 0) throw_errno("cannot look at {}", path_.string());
  try {
    write_all(file_.get(), line_of(row), path_.string());
  } catch (const Error&) {
    // Half a line, on a disk that became full, would spoil the next one.
    if (::ftruncate(file_.get(), before.st_size) != 0)
      throw_errno("cannot cut off a torn line of {}", path_.string());
    throw;
  }
}

}  // namespace kolo::hps

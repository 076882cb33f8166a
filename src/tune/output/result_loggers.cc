// Lines of JSON and CSV are gathered until flush() or up to 64 KiB, because most reports are short
// and trials are many. A file is opened by the first write and closed while its trial waits, so
// that paused trials hold no descriptors. A new metric changes the header of progress.csv: the file
// is read, each row gets empty fields, and a new file replaces it atomically. This costs as much as
// the file is long, but only once for each set of new names. The descriptor is closed before, or
// later rows would go to the file that was replaced.
#include "tune/output/result_loggers.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/csv.h"
#include "base/errors.h"
#include "base/fd.h"
#include "base/files.h"
#include "events/event_file.h"
#include "tune/protocol/value_text.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

using search::Value;

constexpr std::size_t kFlushBytes = 64U << 10;
constexpr std::string_view kConfig = "config";

/// A program that names its metrics by its steps would have a table as wide as it is long.
constexpr std::size_t kMostColumns = 300;

/// So much text waits for a file that cannot be written. A resumed study has all of it in the
/// database and writes the file anew.
constexpr std::size_t kMostPending = 1U << 20;

/// Appends to a file; the file appears with the first flush.
class Appender {
 public:
  explicit Appender(fs::path path) : path_(std::move(path)) {}

  std::string& pending() noexcept { return pending_; }
  void flush() {
    if (pending_.empty()) return;
    const std::size_t before = pending_.size();
    try {
      if (!file_.valid()) file_ = open_trial_file(path_, 0644);
      write_pending(file_.get(), pending_, path_.string());
      size_ += before;
    } catch (const Error&) {
      size_ += before - pending_.size();
      // The line that was begun will be whole.
      if (pending_.size() > kMostPending) pending_.resize(pending_.find('\n') + 1);
      throw;
    }
  }
  /// All that was written. Throws failed_precondition if somebody else has written, too.
  [[nodiscard]] std::string content() const {
    require_trial_directory(path_.parent_path());
    std::error_code none;
    if (fs::file_size(path_, none) != size_ || none)
      throw_error(ErrorCode::failed_precondition, "somebody else has changed {}", path_.string());
    return read_plain_file(path_);
  }
  /// Puts another file in its place, to which the next flush appends.
  void replace(const std::string& text) {
    file_.reset();
    replace_trial_file(path_, text);
    size_ = text.size();
  }
  void flush_if_much() {
    if (pending_.size() >= kFlushBytes) flush();
  }
  /// The next flush opens the file again.
  void close() { file_.reset(); }

 private:
  fs::path path_;
  Fd file_;
  std::size_t size_ = 0;
  std::string pending_;
};

class JsonLogger final : public ResultLogger {
 public:
  explicit JsonLogger(const LoggedTrial& trial) : file_(trial.directory / "result.json") {}
  void result(const Value& result) override {
    // Python's reader takes NaN as Tune writes it.
    file_.pending() += result.to_string();
    file_.pending() += '\n';
    file_.flush_if_much();
  }
  void flush() override { file_.flush(); }
  void release() override { file_.close(); }

 private:
  Appender file_;
};

/// Unlike Tune's, metrics that appear later get a column: the file is then written anew. Metrics
/// beyond kMostColumns are in result.json alone.
class CsvLogger final : public ResultLogger {
 public:
  explicit CsvLogger(const LoggedTrial& trial) : file_(trial.directory / "progress.csv") {}

  void result(const Value& result) override {
    Value::Dict row = flatten(result);
    std::erase_if(row, [](const auto& item) {
      return item.first == kConfig || item.first.starts_with("config/");
    });
    std::vector<std::string> added;
    for (const auto& [key, value] : row)
      if (columns_.size() + added.size() < kMostColumns && !known_.contains(key))
        added.push_back(key);
    if (!added.empty()) extend(added);
    std::string& out = file_.pending();
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (i > 0) out += ',';
      const auto found = row.find(columns_[i]);
      if (found != row.end()) out += csv_field(found->second);
    }
    out += '\n';
    file_.flush_if_much();
  }
  void flush() override { file_.flush(); }
  void release() override { file_.close(); }

 private:
  /// Adds columns at the end: old rows get empty fields.
  void extend(const std::vector<std::string>& added) {
    std::string rows;
    if (!columns_.empty()) {
      flush();
      const std::string old = file_.content();
      const auto lines = csv_lines(old);
      for (std::size_t i = 1; i < lines.size(); ++i)
        rows.append(lines[i]).append(added.size(), ',').append(1, '\n');
    }
    auto columns = columns_;
    columns.insert(columns.end(), added.begin(), added.end());
    std::string header;
    for (std::size_t i = 0; i < columns.size(); ++i)
      header += (i > 0 ? "," : "") + csv_field(Value(columns[i]));
    header += '\n';
    if (rows.empty())
      file_.pending() = header + file_.pending();
    else
      file_.replace(header + rows);
    columns_ = std::move(columns);
    known_.insert(added.begin(), added.end());
  }

  Appender file_;
  std::vector<std::string> columns_;
  std::set<std::string, std::less<>> known_;  // the same
};

std::optional<double> scalar_of(const Value& value) {
  if (value.is_bool()) return value.as_bool() ? 1 : 0;
  if (value.is_number()) return value.as_number();
  return std::nullopt;
}

class TensorBoardLogger final : public ResultLogger {
 public:
  explicit TensorBoardLogger(const LoggedTrial& trial) : trial_(trial) {}

  void result(const Value& result) override {
    const Value* when = result.find_path("timestamp");
    last_time_ = when != nullptr && when->is_number() ? when->as_number() : last_time_;
    if (!file_) open();
    const Value* iteration = result.find_path("training_iteration");
    std::vector<std::pair<std::string, double>> scalars;
    for (const auto& [key, value] : flatten(result)) {
      if (key.starts_with("config/") || key == "pid" || key == "timestamp") continue;
      if (const auto number = scalar_of(value)) scalars.emplace_back("ray/tune/" + key, *number);
    }
    file_->scalars(scalars, iteration != nullptr ? iteration->as_integer() : 0, last_time_);
  }
  void flush() override {
    if (file_) file_->flush();
  }
  void release() override { file_.reset(); }
  void end(bool success) override {
    if (file_) file_->end_of_session(success, last_time_);
  }

 private:
  void open() {
    require_trial_directory(trial_.directory);
    file_ = std::make_unique<events::EventFile>(trial_.directory, last_time_);
    std::vector<events::HParam> params;
    for (const auto& [key, value] : flatten(trial_.config)) {
      if (value.is_bool())
        params.emplace_back(key, value.as_bool());
      else if (value.is_number())
        params.emplace_back(key, value.as_number());
      else
        params.emplace_back(key, value.is_string() ? value.as_string() : value.to_string());
    }
    std::vector<std::string> metrics;
    for (const auto& metric : trial_.metrics) metrics.push_back("ray/tune/" + metric);
    file_->hparams(params, metrics, last_time_);
  }

  LoggedTrial trial_;
  std::unique_ptr<events::EventFile> file_;
  double last_time_ = 0;
};

}  // namespace

std::string csv_field(const Value& value) {
  if (value.is_nothing()) return {};
  if (!value.is_string()) return csv_quoted(value.to_string());
  // Spreadsheets take such texts for formulas, and some formulas run programs.
  const std::string& text = value.as_string();
  const bool is_formula = text.find_first_of("=+-@\t\r") == 0;
  return csv_quoted(is_formula ? "'" + text : text);
}

std::unique_ptr<ResultLogger> make_json_logger(const LoggedTrial& trial) {
  return std::make_unique<JsonLogger>(trial);
}
std::unique_ptr<ResultLogger> make_csv_logger(const LoggedTrial& trial) {
  return std::make_unique<CsvLogger>(trial);
}
std::unique_ptr<ResultLogger> make_tensorboard_logger(const LoggedTrial& trial) {
  return std::make_unique<TensorBoardLogger>(trial);
}

}  // namespace kolo::tune

// results.csv: one line per evaluation that has ended.
//
// Lines are appended, each with one write, and never changed; what a crash tore off is cut away
// when the file is opened again. Columns (DeepHyper's newer layout):
//
//   p:NAME …                          the configuration; empty = inactive, lists as JSON
//   objective | objective_0 …         the number, or the failure ("F_timeout")
//   job_id, job_status                DONE, or CANCELLED when the search ended before it did
//   m:timestamp_submit, m:timestamp_gather    seconds since the search began
//   m:… , m:other                     what the run function said besides; m:other is JSON
//   m:error                           the whole message of a failure
//
// Its older layout is read too: NAME … objective elapsed_sec.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/metric_order.h"
#include "kolo/search/trial.h"
#include "kolo/search/value.h"

namespace kolo::hps {

using search::Value;

struct ResultRow {
  std::string job_id{};
  Value parameters = Value(Value::Dict{});  ///< flat: paths to values
  std::vector<double> objectives{};         ///< empty when it failed
  std::string failure{};                    ///< begins with F
  std::string error{};                      ///< the whole message of the failure
  std::string status = "DONE";
  double submitted = 0, gathered = 0;  ///< seconds since the search began
  std::map<std::string, Value> metadata{};

  [[nodiscard]] bool failed() const noexcept { return objectives.empty(); }
};

struct ResultsTable {
  std::vector<std::string> parameters{};  ///< names, in the order of the columns
  std::size_t objectives = 1;
  std::vector<search::Direction> directions{};  ///< of the objectives; empty = all maximised
  std::vector<std::string> metadata{};
  std::vector<ResultRow> rows{};
  bool torn = false;   ///< the last line was not whole, and is left out
  bool older = false;  ///< of the older layout

  [[nodiscard]] bool minimizes(std::size_t objective) const {
    return objective < directions.size() && directions[objective] == search::Direction::minimize;
  }
  [[nodiscard]] bool is_better(double value, double than, std::size_t objective) const {
    return is_better_metric(value, than, minimizes(objective));
  }
};

/// `path` is the file, or a folder with results.csv in it. Throws not_found, and corruption naming
/// the line.
ResultsTable read_results(const std::filesystem::path& path);

/// The nested configuration of a row: "model/units" becomes {"model": {"units": …}}; elements of
/// lists ("arch_seq/3") become lists. Absent parameters stay absent. Throws invalid_argument for
/// names that would be nested too deeply.
Value nested_config(const Value& flat);
/// The way back, with lists of numbers kept as one value.
Value flat_config(const Value& nested);

/// Beside a results.csv: lines of it that could not be told apart.
inline constexpr const char* kTornResults = "results-torn.csv";

class ResultsWriter {
 public:
  /// Makes the file with columns for these metadata, or goes on with it: what is not a whole line
  /// at its end is cut off. Throws failed_precondition when its parameters or objectives are
  /// others.
  ResultsWriter(std::filesystem::path path, const std::vector<std::string>& parameters,
                std::size_t objectives, const std::vector<std::string>& metadata);

  /// Metadata of a new name get a column. Several processes may append to one file. Throws io; the
  /// lines of the file are then as they were.
  void append(const ResultRow& row);
  /// The ids that were in the file when it was opened.
  [[nodiscard]] const std::set<std::string>& known() const noexcept { return known_; }

 private:
  class Lock;
  void keep_torn(const std::string& lines) const;
  void open();
  void read_columns();
  [[nodiscard]] bool has_column(const std::string& column) const;
  void add_columns(const ResultRow& row);
  [[nodiscard]] std::string line_of(const ResultRow& row) const;

  std::filesystem::path path_;
  std::vector<std::string> fixed_;    // the first columns
  std::vector<std::string> columns_;  // of the file
  std::set<std::string> known_;
  Fd file_;
};

/// The name behind "m:" of the column for a metric. One that is called as a column of kolo's own
/// gets a "_" at its end, as do those that would be mistaken for it then: "error" is "error_", and
/// "error_" is "error__". Control characters are written as in JSON.
std::string metadata_name(const std::string& metric);

/// One field as it stands in the file, and the value of one.
std::string field_of_value(const Value& value);
Value value_of_field(const std::string& field);

}  // namespace kolo::hps

// The files of a search: results.csv, kolo.log, init_infos.json, save/, and the study's database.
#pragma once

#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "base/fd.h"
#include "base/json.h"
#include "hps/results/results_csv.h"
#include "hps/results/trial_rows.h"
#include "hps/search/search_plan.h"
#include "hps/search/search_run.h"
#include "store/study_records.h"
#include "tune/output/observer.h"

namespace kolo::hps {

/// One JSON object a line: {"time": seconds since 1970, "event": …}.
class SearchLog {
 public:
  explicit SearchLog(const std::filesystem::path& path);
  /// A line that cannot be written is let go: the log is for people.
  void write(const std::string& event, Json fields = Json::object()) noexcept;

 private:
  Fd file_;
};

/// A results.csv of the older layout that a search goes on from; it has written its rows anew.
inline constexpr const char* kOlderResults = "results-older.csv";

/// What an earlier search left in a folder.
struct EarlierSearch {
  bool has_database = false;
  bool has_results = false;
  Json infos{};  ///< init_infos.json; null = there is none
};
/// Throws invalid_argument, naming the file, if init_infos.json is not what a search writes.
EarlierSearch look_at_folder(const std::filesystem::path& log_dir);

/// Moves everything that an earlier search left into log_dir/earlier-DATE. Throws
/// failed_precondition when a process is at work there.
void move_aside(const std::filesystem::path& log_dir);

/// Keeps the files in step with the study. Called from the controller's thread.
class SearchFiles final : public tune::Observer {
 public:
  /// Opens or makes them. `first_number` is added to the numbers of evaluations: those before came
  /// from a results.csv without a database.
  SearchFiles(const SearchPlan& plan, std::int64_t first_number);

  /// After the study was opened: what it has and results.csv lacks is appended.
  void catch_up(double study_created, const std::vector<store::TrialRecord>& trials,
                const std::unordered_map<std::int64_t, std::string>& last_reports);

  void on_trial_start(const tune::TrialInfo& trial) override;
  void on_trial_complete(const tune::TrialInfo& trial) override;
  void on_trial_error(const tune::TrialInfo& trial) override;
  void on_step(const std::function<tune::StudyView(std::size_t)>& view) override;
  void on_end(const std::function<tune::StudyView(std::size_t)>& view) override;
  void on_message(const std::string& text) override;

  [[nodiscard]] SearchLog& log() noexcept { return log_; }
  /// So far; `interrupted` is left to others.
  [[nodiscard]] const SearchSummary& summary() const noexcept { return summary_; }
  /// Counts rows of earlier files.
  void count(const ResultRow& row);
  /// The same, and writes it unless it is there.
  void take_over(const ResultRow& row);

 private:
  void add(const EndedTrial& trial);
  void add_to_front(const ResultRow& row);
  /// Appends what waits. A disk that is full holds nothing up: the database has it all.
  void append_pending();
  [[nodiscard]] std::string job_id(std::int64_t number) const;

  std::vector<std::string> metrics_;  // names of the objectives
  int agent_, agents_;
  std::int64_t first_number_;
  double began_ = 0;
  ResultsWriter results_;
  std::deque<ResultRow> pending_;  // not in results.csv yet
  bool complained_ = false;
  SearchLog log_;
  std::unordered_map<std::int64_t, double> started_;
  SearchSummary summary_;
};

}  // namespace kolo::hps

// The trials of one study in columns, kept up to date while the study goes on.
//
// A study may have a million trials, so it is not read again for each question. What has ended does
// not change: only trials that were under way, and those that have begun since, are read when
// something is new. Reports are not kept at all except for the last values of each trial; curves
// are read for the few trials that are drawn. A million trials with 20 parameters take some 600 MB.
//
// The first reading takes a while, so it is done in steps, and what has been read can be shown.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/deadline.h"
#include "dashboard/column.h"
#include "store/study_store.h"
#include "tune/output/studies_table.h"
#include "tune/output/study_json.h"

namespace kolo::dashboard {

/// A part of the trials of a study.
struct TrialsQuestion {
  std::string study;
  std::string filter{};  ///< as `kolo trials --filter` has it; "" = all
  std::string sort{};    ///< a column; "" = the number of the trial
  bool descending = false;
  std::size_t offset = 0, limit = 100;
};

class StudyIndex {
 public:
  explicit StudyIndex(store::StudyRecord study);

  /// Reads what is new, one step at least. False when the time was over before the end.
  bool follow(store::StudyStore& store, const Deadline& deadline);

  [[nodiscard]] const store::StudyRecord& study() const noexcept { return study_; }
  [[nodiscard]] const tune::StudySpec& spec() const noexcept { return spec_; }
  [[nodiscard]] std::size_t size() const noexcept { return status_.size(); }
  /// Whether everything has been read once.
  [[nodiscard]] bool complete() const noexcept { return complete_; }

  [[nodiscard]] tune::StudyCounts counts() const;
  /// How many trials have which status.
  [[nodiscard]] std::map<std::string, std::size_t> by_status() const;
  [[nodiscard]] std::size_t stopped_early() const;
  [[nodiscard]] std::vector<std::string> metrics() const;
  /// The trial with the best last value of the first objective.
  [[nodiscard]] std::optional<std::int64_t> best() const;
  /// The trials for which a filter holds (as `kolo trials --filter` has it; "" = all), ascending.
  /// Throws invalid_argument for what cannot be read in it.
  [[nodiscard]] std::vector<std::uint32_t> matching(const std::string& filter) const;
  /// Of these, as tune/output/chosen_trials.h says, by the first objective.
  [[nodiscard]] std::vector<std::int64_t> chosen(std::span<const std::uint32_t> among,
                                                 std::size_t most) const;
  [[nodiscard]] std::vector<std::int64_t> running() const;
  /// At most so many that have ended, evenly.
  [[nodiscard]] std::vector<std::int64_t> ended(std::size_t most) const;
  [[nodiscard]] tune::TrialFacts facts(std::int64_t number) const;
  [[nodiscard]] std::int64_t iteration(std::int64_t number) const;

  struct Answer {
    tune::Table rows;  ///< with the number of the trial in the first column
    std::size_t matching = 0, offset = 0;
  };
  /// Throws invalid_argument for what cannot be read in it, as matching() does.
  [[nodiscard]] Answer trials(const TrialsQuestion& question) const;

 private:
  Column& column(const std::string& name);
  [[nodiscard]] const Column* find(const std::string& name) const;
  [[nodiscard]] std::vector<std::string> shown_columns() const;
  /// One of shown_columns(); `numbers` is made if it is the first one, the numbers of the trials.
  [[nodiscard]] const Column& field(const std::vector<std::string>& names, std::size_t place,
                                    Column& numbers) const;
  /// NaN where there is none: the first objective, larger is worse.
  [[nodiscard]] double badness(std::size_t row) const;
  [[nodiscard]] double until() const noexcept { return std::max(until_, study_.created); }
  void read(store::StudyStore& store, store::TrialRange range);
  /// Of trials that were read before, what has changed.
  void read_again(store::StudyStore& store, store::TrialRange range);
  void put(const store::TrialRecord& record);
  void put(store::StudyStore& store, const store::ReportRecord& report,
           const std::vector<std::string>& known);
  void put_metrics(std::size_t row, const std::string& metrics);
  void read_events(store::StudyStore& store);

  store::StudyRecord study_;
  tune::StudySpec spec_;
  bool complete_ = false;
  std::int64_t event_seq_ = 0;
  double until_ = 0;  // when something was heard of it for the last time

  std::vector<std::uint8_t> status_;  // of store::TrialStatus; as all below, by number of trial
  std::vector<char> stopped_, over_;
  std::vector<double> started_, ended_;  // NaN: not yet
  std::vector<std::int64_t> open_;       // numbers of trials that have not ended, ascending
  std::unordered_map<std::int64_t, std::size_t> configs_;  // of these: hashes of what they run with
  std::map<std::string, Column> columns_;                  // as the table of trials names them
  Column places_, errors_, reasons_;
  std::unordered_map<std::int64_t, std::vector<store::EventRecord>> moves_;  // what cuts runs
};

}  // namespace kolo::dashboard

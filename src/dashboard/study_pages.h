// What the pages about studies show, as JSON: read from the database, also while other processes
// write it.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/mutex.h"
#include "store/study_store.h"
#include "tune/output/study_json.h"

namespace kolo::dashboard {

/// A part of the trials of a study.
struct TrialsQuestion {
  std::string study;
  std::string filter{};  ///< as `kolo trials --filter` has it; "" = all
  std::string sort{};    ///< columns with commas between; "" = the number of the trial
  bool descending = false;
  std::size_t offset = 0, limit = 100;
};

/// From any thread. Methods throw kolo::Error: not_found, invalid_argument, unavailable.
class StudyPages {
 public:
  /// The database need not be there yet.
  explicit StudyPages(std::string storage_url) : url_(std::move(storage_url)) {}

  Json studies();
  /// Without curves and importance. Of very many trials, the best ones and some of the others.
  Json study(const std::string& name);
  Json trials(const TrialsQuestion& question);
  /// {"0": [[iteration, value] …]}; of many trials, the best ones and some of the others.
  Json curves(const std::string& name, const std::string& metric);
  Json importance(const std::string& name);
  Json trial(const std::string& name, std::int64_t number);
  /// As `kolo stop` does.
  void stop(const std::string& name, std::optional<std::int64_t> trial);

 private:
  struct Open;
  /// A study as it was at a certain point of its history.
  using Snapshot = std::shared_ptr<const tune::StudyData>;

  /// Reads it again only if it has changed.
  Snapshot snapshot(const std::string& name) KOLO_EXCLUDES(mutex_);
  template <class Work>
  auto with_store(Work work) KOLO_EXCLUDES(mutex_);

  const std::string url_;
  Mutex mutex_;
  std::shared_ptr<Open> open_ KOLO_GUARDED_BY(mutex_);
  std::list<Snapshot> snapshots_ KOLO_GUARDED_BY(mutex_);  // newest first
  Mutex importance_mutex_;                                 // one at a time: it takes a while
  std::list<std::pair<Snapshot, Json>> importances_ KOLO_GUARDED_BY(importance_mutex_);
};

}  // namespace kolo::dashboard

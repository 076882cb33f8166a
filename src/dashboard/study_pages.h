// What the pages about studies show, as JSON: read from the database, also while other processes
// write it.
#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>

#include "base/json.h"
#include "base/mutex.h"
#include "dashboard/study_index.h"
#include "store/study_store.h"

namespace kolo::dashboard {

/// From any thread. Methods throw kolo::Error: not_found, invalid_argument, unavailable.
class StudyPages {
 public:
  /// The database need not be there yet. `more_read(study)` is called from a thread of this object
  /// while a large study is being read for the first time, whenever more of it can be shown.
  StudyPages(std::string storage_url, std::function<void(const std::string&)> more_read);
  ~StudyPages();

  Json studies();
  /// Its state, how many trials there are in which status, and the best one: small and quick.
  Json summary(const std::string& name);
  /// The same with the trials for which `filter` holds (as `kolo trials --filter` has it), without
  /// curves and importance. Of very many trials, the best ones and some of the others.
  Json study(const std::string& name, const std::string& filter);
  Json trials(const TrialsQuestion& question);
  /// {"0": [[iteration, value] …]}; of the same trials, fewer if there are many.
  Json curves(const std::string& name, const std::string& metric, const std::string& filter);
  Json importance(const std::string& name);
  Json trial(const std::string& name, std::int64_t number);
  /// Where the output of a trial is written.
  std::filesystem::path directory_of(const std::string& name, std::int64_t number);
  void add_trials(const std::string& name, std::int64_t count);
  /// As `kolo stop` does.
  void stop(const std::string& name, std::optional<std::int64_t> trial);

 private:
  struct Open;
  /// What is known of a study.
  struct Known {
    StudyIndex index;
    /// By trial and metric: at which iteration, and the curve.
    std::unordered_map<std::string, std::pair<std::int64_t, Json>> curves{};
    std::size_t weighed = 0;  ///< trials that importance is made of
    Json importance{};
  };
  /// A study that somebody looks at, or has looked at.
  struct Kept {
    explicit Kept(store::StudyRecord study)
        : id(study.id), known{.index = StudyIndex(std::move(study))} {}
    const store::StudyId id;
    Mutex mutex;
    Known known KOLO_GUARDED_BY(mutex);
  };

  template <class Work>
  auto with_store(Work work) KOLO_EXCLUDES(mutex_);
  std::shared_ptr<Kept> kept(const store::StudyRecord& study) KOLO_REQUIRES(mutex_);
  /// work(store, known) with a study as it is now, or as far as it could be read in a moment.
  template <class Work>
  auto with_index(const std::string& name, Work work) KOLO_EXCLUDES(mutex_);
  static Json summary_of(store::StudyStore& store, const Known& known);
  void read_on() KOLO_EXCLUDES(mutex_);

  const std::string url_;
  const std::function<void(const std::string&)> more_read_;
  Mutex mutex_;
  CondVar changed_;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::shared_ptr<Open> open_ KOLO_GUARDED_BY(mutex_);
  std::list<std::shared_ptr<Kept>> kept_ KOLO_GUARDED_BY(mutex_);    // newest first
  std::list<std::shared_ptr<Kept>> unread_ KOLO_GUARDED_BY(mutex_);  // for the thread
  std::set<store::StudyId> unreadable_ KOLO_GUARDED_BY(mutex_);      // those that were named
  std::thread reader_;
};

}  // namespace kolo::dashboard

// What the pages about jobs show, as JSON.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/mutex.h"
#include "jobs/database/state_counts.h"
#include "kolo/jobs.h"

namespace kolo::dashboard {

/// From any thread. Methods throw kolo::Error: not_found, unavailable; failed_precondition where
/// there is no database of jobs.
class JobPages {
 public:
  /// "" = there is none.
  explicit JobPages(std::filesystem::path folder) : folder_(std::move(folder)) {}

  [[nodiscard]] bool present() const { return !folder_.empty(); }
  /// The newest jobs of a state ("" = of any), how many there are in each, and the launchers.
  Json jobs(const std::string& state, std::size_t limit);
  /// Which jobs of a workflow wait for which: {grouped, nodes: [{label, id, states}], edges}.
  Json graph(const std::string& workflow);
  /// A job with its history, and what `kolo explain` says about it.
  Json job(std::int64_t id);
  std::filesystem::path output_of(std::int64_t id);
  /// As `kolo kill` does; how many were ended.
  std::int64_t kill(std::int64_t id);
  /// Another text whenever something has changed.
  std::string version();

 private:
  struct Open {
    jobs::JobDatabase database;
    jobs::StateCounts counts{};
  };

  template <class Work>
  auto with_jobs(Work work) KOLO_EXCLUDES(mutex_);

  const std::filesystem::path folder_;
  Mutex mutex_;
  std::optional<Open> open_ KOLO_GUARDED_BY(mutex_);
};

}  // namespace kolo::dashboard

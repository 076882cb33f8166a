// Looks at the databases several times a second, and tells the feed what is new.
//
// A look costs one short row per study, so it is done here once, for all pages, instead of by each.
#pragma once

#include <atomic>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "dashboard/change_feed.h"
#include "dashboard/job_pages.h"

namespace kolo::dashboard {

class ChangeWatch {
 public:
  /// The pages and the feed must outlive it.
  ChangeWatch(std::string storage_url, JobPages& jobs, ChangeFeed& feed);
  ~ChangeWatch();
  ChangeWatch(const ChangeWatch&) = delete;
  ChangeWatch& operator=(const ChangeWatch&) = delete;

 private:
  void watch_studies();
  void watch_jobs();
  void watch_runs();
  /// False when it is time to end.
  bool sleep(std::chrono::milliseconds duration);

  const std::string url_;
  JobPages& jobs_;
  ChangeFeed& feed_;
  Mutex mutex_;
  CondVar ended_;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::thread studies_thread_, jobs_thread_, runs_thread_;
};

}  // namespace kolo::dashboard

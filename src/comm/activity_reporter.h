// Tells the launcher once a second what the ranks of this process do.
#pragma once

#include <memory>
#include <thread>

#include "base/mutex.h"
#include "comm/bootstrap.h"

namespace kolo::comm {

class ActivityReporter {
 public:
  explicit ActivityReporter(std::shared_ptr<Bootstrap> bootstrap);
  ~ActivityReporter();
  ActivityReporter(const ActivityReporter&) = delete;
  ActivityReporter& operator=(const ActivityReporter&) = delete;

 private:
  void run();

  const std::shared_ptr<Bootstrap> bootstrap_;
  Mutex mutex_;
  CondVar ended_;
  bool over_ KOLO_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

/// One, where the launcher has said that it listens (KOLO_ACTIVITY); else none.
std::unique_ptr<ActivityReporter> make_activity_reporter(std::shared_ptr<Bootstrap> bootstrap);

}  // namespace kolo::comm

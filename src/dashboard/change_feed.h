// What has changed, for everybody who listens: the source of the events that the pages get.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "base/mutex.h"

namespace kolo::dashboard {

class ChangeFeed {
 public:
  struct Change {
    std::int64_t number = 0;
    std::string text;  ///< JSON in one line
  };

  void publish(std::string text);
  /// The number of the newest change; 0 before the first.
  [[nodiscard]] std::int64_t newest();
  /// Changes after this number, as soon as there are some; none at the end of `patience`, or when
  /// the feed was closed. Whoever is far behind gets the newest ones alone.
  [[nodiscard]] std::vector<Change> after(std::int64_t number, std::chrono::milliseconds patience);
  /// Waits. False when the feed was closed.
  bool pause(std::chrono::milliseconds duration);
  /// Nobody waits any more.
  void close();

 private:
  Mutex mutex_;
  CondVar changed_, closing_;
  std::deque<Change> changes_ KOLO_GUARDED_BY(mutex_);
  std::int64_t newest_ KOLO_GUARDED_BY(mutex_) = 0;
  bool closed_ KOLO_GUARDED_BY(mutex_) = false;
};

}  // namespace kolo::dashboard

#include "dashboard/change_feed.h"

namespace kolo::dashboard {

void ChangeFeed::publish(std::string text) {
  constexpr std::size_t kKept = 1000;
  const MutexLock lock(mutex_);
  changes_.push_back({++newest_, std::move(text)});
  if (changes_.size() > kKept) changes_.pop_front();
  changed_.notify_all();
}

std::int64_t ChangeFeed::newest() {
  const MutexLock lock(mutex_);
  return newest_;
}

std::vector<ChangeFeed::Change> ChangeFeed::after(std::int64_t number,
                                                  std::chrono::milliseconds patience) {
  MutexLock lock(mutex_);
  changed_.wait_for(lock, patience,
                    [&]() KOLO_REQUIRES(mutex_) { return closed_ || newest_ > number; });
  std::vector<Change> later;
  for (const auto& change : changes_)
    if (change.number > number) later.push_back(change);
  return later;
}

bool ChangeFeed::pause(std::chrono::milliseconds duration) {
  MutexLock lock(mutex_);
  return !closing_.wait_for(lock, duration, [this]() KOLO_REQUIRES(mutex_) { return closed_; });
}

void ChangeFeed::close() {
  const MutexLock lock(mutex_);
  closed_ = true;
  changed_.notify_all();
  closing_.notify_all();
}

}  // namespace kolo::dashboard

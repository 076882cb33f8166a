// A mutex, a lock and a condition that Clang's thread-safety analysis understands: libstdc++'s have
// no annotations. They are thin: each call is the standard one.
//
//   Mutex mutex_;
//   CondVar changed_;
//   int waiting_ KOLO_GUARDED_BY(mutex_) = 0;
//
//   MutexLock lock(mutex_);
//   changed_.wait(lock, [this]() KOLO_REQUIRES(mutex_) { return waiting_ == 0; });
#pragma once

#include <condition_variable>
#include <mutex>
#include <utility>

#include "base/thread_annotations.h"

namespace kolo {

class KOLO_CAPABILITY("mutex") Mutex {
 public:
  void lock() KOLO_ACQUIRE() { mutex_.lock(); }
  void unlock() KOLO_RELEASE() { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

/// Holds a mutex until the end of its scope, except between unlock() and lock().
class KOLO_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) KOLO_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() KOLO_RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void lock() KOLO_ACQUIRE() { lock_.lock(); }
  void unlock() KOLO_RELEASE() { lock_.unlock(); }

 private:
  friend class CondVar;
  std::unique_lock<std::mutex> lock_;
};

/// Waiting gives the mutex up and takes it again: for the analysis, it is held all the time.
class CondVar {
 public:
  void notify_one() noexcept { condition_.notify_one(); }
  void notify_all() noexcept { condition_.notify_all(); }

  void wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  template <typename Predicate>
  void wait(MutexLock& lock, Predicate done) {
    condition_.wait(lock.lock_, std::move(done));
  }
  template <typename Duration>
  std::cv_status wait_for(MutexLock& lock, const Duration& duration) {
    return condition_.wait_for(lock.lock_, duration);
  }
  template <typename Duration, typename Predicate>
  bool wait_for(MutexLock& lock, const Duration& duration, Predicate done) {
    return condition_.wait_for(lock.lock_, duration, std::move(done));
  }
  template <typename TimePoint>
  std::cv_status wait_until(MutexLock& lock, const TimePoint& time) {
    return condition_.wait_until(lock.lock_, time);
  }
  template <typename TimePoint, typename Predicate>
  bool wait_until(MutexLock& lock, const TimePoint& time, Predicate done) {
    return condition_.wait_until(lock.lock_, time, std::move(done));
  }

 private:
  std::condition_variable condition_;
};

}  // namespace kolo

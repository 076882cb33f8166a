// Notifications of a database as a descriptor to poll.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "kolo/jobs.h"
#include "store/database.h"

namespace kolo::jobs {

/// Has a thread and a connection of its own.
class Waker {
 public:
  explicit Waker(JobDatabase& jobs);
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;

  /// Readable after a notification, until clear().
  [[nodiscard]] int fd() const noexcept { return event_.get(); }
  void clear() const;

 private:
  void run();

  Fd event_;
  std::atomic<bool> over_{false};
  std::unique_ptr<store::Watch> watch_;
  std::thread thread_;
};

}  // namespace kolo::jobs

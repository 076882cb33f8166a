// Which ranks of the job are gone, told once to everybody who waits.
//
// One thread per Context sleeps in poll(2) on a pidfd for each rank of this host and on the
// bootstrap's news. When a rank goes, departed() changes and the listeners are called; waits look
// at any_departed() whenever they are about to sleep. Nothing runs while nothing happens.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/mutex.h"
#include "comm/bootstrap.h"

namespace kolo::comm {

class Liveness {
 public:
  /// `bootstrap` is asked for news.
  explicit Liveness(std::shared_ptr<Bootstrap> bootstrap);
  ~Liveness();
  Liveness(const Liveness&) = delete;
  Liveness& operator=(const Liveness&) = delete;

  /// Watches a process of this host that is world rank `rank`. Ranks of this process are not
  /// watched.
  void watch(int rank, pid_t pid);

  [[nodiscard]] bool any_departed() const noexcept {
    return departed_count_.load(std::memory_order_acquire) != 0;
  }
  /// Why a world rank is gone, if it is.
  [[nodiscard]] std::optional<std::string> departure_of(int rank) const;
  [[nodiscard]] std::vector<Departure> departures() const;

  /// Says that a rank is gone (seen by a transport, for example a closed connection). The first
  /// word on a rank stays, except that how it went (DepartureKind) may become known later.
  void declare(const Departure& departure);

  /// Called on the watching thread (or the declaring one) at each departure, and again when it
  /// becomes known how the rank went; also for those that happened before. Must not block or throw.
  /// Returns a token for unlisten(), after which the listener is not running and will not be
  /// called.
  int listen(std::function<void(const Departure&)> listener);
  void unlisten(int token);

 private:
  void run();
  void wake() noexcept;

  std::shared_ptr<Bootstrap> bootstrap_;
  std::recursive_mutex calling_;  // held while listeners run; taken before mutex_
  mutable Mutex mutex_;
  std::vector<Departure> departures_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::pair<int, Fd>> watched_ KOLO_GUARDED_BY(mutex_);
  std::vector<std::pair<int, std::function<void(const Departure&)>>> listeners_
      KOLO_GUARDED_BY(mutex_);
  int next_token_ KOLO_GUARDED_BY(mutex_) = 0;
  std::atomic<int> departed_count_{0};
  std::atomic<bool> stopping_{false};
  Fd wake_fd_;
  std::thread thread_;
};

}  // namespace kolo::comm

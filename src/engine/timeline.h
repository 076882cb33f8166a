// A Chrome trace of what every rank's engine did, in one file.
//
// Each rank notes its own events as lines of JSON; the thread of the global process set carries
// them to rank 0, which appends them to the file. So ranks of all hosts are in one file without
// sharing a file system. Times are microseconds since the collective start.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/mutex.h"

namespace kolo::runtime {

/// The events of one rank, until they are carried away.
class Timeline {
 public:
  using Clock = std::chrono::steady_clock;

  /// `ship` is called, from whichever thread notes an event, when there is enough to carry.
  void start(int rank, std::function<void()> ship);
  void stop();
  [[nodiscard]] bool is_on() const noexcept { return is_on_.load(std::memory_order_relaxed); }

  /// Every time that operations begin gets a CYCLE_START. Before start().
  void mark_cycles(bool on) noexcept { marks_cycles_ = on; }

  /// A span of one operation, in Horovod's words: "NEGOTIATE_ALLREDUCE", "ALLREDUCE", "QUEUE" …
  void span(std::string_view what, std::string_view name, Clock::time_point begin,
            Clock::time_point end, std::size_t bytes = 0);
  /// A moment of one operation: "ready".
  void mark(std::string_view what, std::string_view name, Clock::time_point when);
  /// Operations begin.
  void cycle(Clock::time_point when);

  /// Events since the last call, one per line, each with a comma in front.
  std::string take();

 private:
  static constexpr std::size_t kEnoughToShip = 16 * 1024;

  /// One event; `rest` are its own fields.
  void add(std::string_view what, std::string_view name, Clock::time_point when,
           std::string_view rest);

  std::atomic<bool> is_on_{false}, marks_cycles_{false};
  Mutex mutex_;
  int rank_ KOLO_GUARDED_BY(mutex_) = 0;
  Clock::time_point epoch_ KOLO_GUARDED_BY(mutex_);
  std::string lines_ KOLO_GUARDED_BY(mutex_);
  std::function<void()> ship_ KOLO_GUARDED_BY(mutex_);
};

/// The file, on rank 0. Whoever reads it at any instant, in however many pieces, gets valid JSON:
/// it is replaced as a whole, by one that has the new lines too. To do that for every line would be
/// slow, so lines wait until they are an eighth of the file or a second old.
class TraceFile {
 public:
  /// Throws io.
  TraceFile(const std::string& path, int ranks);
  /// Writes what waits.
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  void append(std::string_view lines);

 private:
  void replace();
  void replace_by(const std::string& fresh);

  std::string path_;
  Fd file_;               // the current one; invalid after a failure
  std::size_t size_ = 0;  // of it, without the closing bracket
  std::string waiting_;
  std::chrono::steady_clock::time_point replaced_;
};

}  // namespace kolo::runtime

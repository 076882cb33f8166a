// What the ranks of this process do, for whoever looks at the job from outside.
//
// Counting costs a store; a wait is noted only where a thread goes to sleep anyway.
// ActivityReporter tells it to the launcher once a second.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

namespace kolo::comm {

class Activity {
 public:
  constexpr Activity() = default;

  void note_step() noexcept { steps_.fetch_add(1, std::memory_order_relaxed); }
  /// Operations that two threads begin in the same instant may count as one.
  void note_operation() noexcept {
    operations_.store(operations_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  [[nodiscard]] std::uint64_t steps() const noexcept {
    return steps_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t operations() const noexcept {
    return operations_.load(std::memory_order_relaxed);
  }
  /// Whether a thread sleeps until other ranks have come.
  [[nodiscard]] bool waits() const noexcept { return asleep_.load(std::memory_order_relaxed) > 0; }

 private:
  friend class Asleep;
  std::atomic<std::uint64_t> steps_{0}, operations_{0};
  std::atomic<int> asleep_{0};
};

/// Of this process, whatever its Contexts.
inline constinit Activity activity;

/// This thread sleeps until other ranks have come.
class Asleep {
 public:
  Asleep() noexcept { activity.asleep_.fetch_add(1, std::memory_order_relaxed); }
  ~Asleep() { activity.asleep_.fetch_sub(1, std::memory_order_relaxed); }
  Asleep(const Asleep&) = delete;
  Asleep& operator=(const Asleep&) = delete;
};

/// What a rank tells its launcher.
struct ActivityReport {
  std::uint64_t steps = 0, operations = 0;  ///< since the process began
  /// One letter per tenth of a second since the last report: 'w' = it waited for others, '.' = not.
  std::string samples;

  bool operator==(const ActivityReport&) const = default;
};

std::string encode(const ActivityReport& report);
/// Throws corruption.
ActivityReport decode_activity(std::string_view payload);

}  // namespace kolo::comm

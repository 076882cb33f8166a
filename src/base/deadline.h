// A moment by which a wait must end.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>

namespace kolo {

/// "For ever" is often written as the largest number, which no clock can be moved by: whatever is
/// longer than this counts as this.
inline constexpr std::chrono::hours kLongestTime{365 * 24};

class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  static Deadline after(std::chrono::nanoseconds duration) {
    return Deadline(Clock::now() + std::min<std::chrono::nanoseconds>(duration, kLongestTime));
  }
  /// Of any unit: the largest number of seconds is none of nanoseconds.
  template <class Count, class Unit>
  static Deadline after(std::chrono::duration<Count, Unit> duration) {
    using Seconds = std::chrono::duration<double>;
    if (Seconds(duration) >= Seconds(kLongestTime))
      return after(std::chrono::nanoseconds(kLongestTime));
    return after(std::chrono::ceil<std::chrono::nanoseconds>(duration));
  }
  static Deadline at(Clock::time_point when) { return Deadline(when); }

  [[nodiscard]] bool passed() const { return Clock::now() >= when_; }
  [[nodiscard]] Clock::time_point when() const { return when_; }

  /// Time left, never negative.
  [[nodiscard]] std::chrono::nanoseconds left() const {
    auto left = when_ - Clock::now();
    return left.count() > 0 ? left : std::chrono::nanoseconds(0);
  }

  /// Time left in the form that poll(2) takes, rounded up so that a wait never spins on 0.
  [[nodiscard]] int poll_timeout_ms() const {
    auto ms = std::chrono::ceil<std::chrono::milliseconds>(left()).count();
    constexpr auto kMax = std::numeric_limits<int>::max();
    return ms > kMax ? kMax : static_cast<int>(ms);
  }

 private:
  explicit Deadline(Clock::time_point when) : when_(when) {}
  Clock::time_point when_;
};

}  // namespace kolo

// Time as something that is passed in, so that a test can give it.
#pragma once

#include <chrono>

namespace kolo {

/// Safe to use from several threads.
class Clock {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  virtual ~Clock() = default;
  /// For waits and limits: it never goes back.
  [[nodiscard]] virtual Time now() const = 0;
  /// For records: seconds since 1970.
  [[nodiscard]] virtual double date() const = 0;
};

/// The clocks of this machine.
const Clock& system_clock();

/// Longer times than the clock can count end with it, and those that are no number are the longest.
inline Clock::Duration clock_duration(double seconds) {
  constexpr double kLongest = 1e9;
  if (!(seconds < kLongest)) seconds = kLongest;
  if (seconds < -kLongest) seconds = -kLongest;
  return std::chrono::duration_cast<Clock::Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace kolo

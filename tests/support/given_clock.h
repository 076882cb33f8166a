// A clock that stands still until a test moves it.
#pragma once

#include <atomic>

#include "base/clock.h"

namespace kolo::test {

class GivenClock final : public Clock {
 public:
  [[nodiscard]] Time now() const override { return Time(Duration(passed_.load())); }
  [[nodiscard]] double date() const override {
    return kBegin + std::chrono::duration<double>(Duration(passed_ + stepped_)).count();
  }

  void advance(Duration time) { passed_ += time.count(); }
  /// Somebody sets the clock: the date changes, and no time has passed.
  void step_date(Duration by) { stepped_ += by.count(); }

 private:
  static constexpr double kBegin = 1'700'000'000;
  // Not 0: a time that was never set must lie in the past.
  std::atomic<Duration::rep> passed_ = Duration(std::chrono::hours(1)).count();
  std::atomic<Duration::rep> stepped_ = 0;
};

}  // namespace kolo::test

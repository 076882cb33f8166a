// Trying again what failed for a reason that may pass: a database that does not answer, a full
// disk.
//
//   Retry retry("the job database");
//   while (!retry.attempt([&] { jobs.create(job); })) sleep_until(retry.next());
//
// The first attempt after a failure is made after 50 ms; each further one after twice the time of
// the one before, at most after 2 s. Nothing here waits: the caller knows how.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "kolo/error.h"

namespace kolo {

class Retry {
 public:
  /// `what` begins the sentence that is told when attempts begin to fail, and when they work again;
  /// by default to the log. The clock must outlive this. When attempts have failed for longer than
  /// `patience`, the next error is thrown.
  explicit Retry(std::string what, const Clock& clock = system_clock(),
                 std::optional<Clock::Duration> patience = std::nullopt,
                 std::function<void(const std::string&)> tell = {});

  /// Whether trying again may help: unavailable, io and timeout.
  [[nodiscard]] static bool may_pass(const Error& error) noexcept;

  /// True if the call was made and came back. False if it failed for a reason that may pass, or if
  /// it is not yet time to try again. Throws all other errors.
  template <class Call>
  bool attempt(Call&& call) {
    if (waits()) return false;
    try {
      call();
    } catch (const Error& error) {
      failed(error);
      return false;
    }
    if (next_) succeeded();
    return true;
  }

  /// The last attempt failed.
  [[nodiscard]] bool failing() const noexcept { return next_.has_value(); }
  /// The last attempt failed, and it is not yet time for the next one.
  [[nodiscard]] bool waits() const { return next_ && clock_.now() < *next_; }
  /// While failing(): when the next attempt may be made.
  [[nodiscard]] Clock::Time next() const { return next_.value(); }
  /// While failing(): the message of the last error.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }

 private:
  static constexpr std::chrono::milliseconds kFirst{50}, kLongest{2000};

  void failed(const Error& error);
  void succeeded();

  std::string what_;
  const Clock& clock_;
  std::optional<Clock::Duration> patience_;
  std::function<void(const std::string&)> tell_;
  std::optional<Clock::Time> next_;
  Clock::Time failing_since_{};
  std::string reason_;
  std::chrono::milliseconds backoff_ = kFirst;
};

}  // namespace kolo

// One request to end that arrives as two signals.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace kolo {

/// timeout(1) and some batch systems send a signal to a process and at once to its whole group. A
/// second request to end means more than the first, so its echo must not count as one. May be used
/// in a handler of signals.
class SignalEcho {
 public:
  /// To be called for each signal: whether it only repeats the one before.
  bool is_echo() noexcept {
    const std::int64_t now = std::chrono::steady_clock::now().time_since_epoch().count();
    const std::int64_t request = request_.load();
    if (request != 0 && now - request < kEcho.count()) return true;
    request_ = now;
    return false;
  }

 private:
  static constexpr std::chrono::steady_clock::duration kEcho = std::chrono::milliseconds(250);
  std::atomic<std::int64_t> request_{0};
};

}  // namespace kolo

#include "base/retry.h"

#include <algorithm>

#include "base/errors.h"
#include "base/log.h"

namespace kolo {

Retry::Retry(std::string what, const Clock& clock, std::optional<Clock::Duration> patience,
             std::function<void(const std::string&)> tell)
    : what_(std::move(what)), clock_(clock), patience_(patience), tell_(std::move(tell)) {
  if (!tell_) tell_ = [](const std::string& text) { log::warning("{}", text); };
}

bool Retry::may_pass(const Error& error) noexcept {
  return error.code() == ErrorCode::unavailable || error.code() == ErrorCode::io ||
         error.code() == ErrorCode::timeout;
}

void Retry::failed(const Error& error) {
  if (!may_pass(error)) throw error;
  const auto now = clock_.now();
  if (!next_) {
    failing_since_ = now;
    tell_(fmt::format("{} fails and is tried again: {}", what_, error.message()));
  } else if (patience_ && now - failing_since_ > *patience_) {
    throw error;
  }
  reason_ = error.message();
  next_ = now + backoff_;
  backoff_ = std::min(backoff_ * 2, kLongest);
}

void Retry::succeeded() {
  tell_(what_ + " works again");
  next_.reset();
  backoff_ = kFirst;
}

}  // namespace kolo

#include "base/retry.h"

#include <algorithm>

#include "base/log.h"

namespace kolo {

bool Retry::may_pass(const Error& error) noexcept {
  return error.code() == ErrorCode::unavailable || error.code() == ErrorCode::io ||
         error.code() == ErrorCode::timeout;
}

void Retry::failed(const Error& error) {
  if (!may_pass(error)) throw error;
  const auto now = clock_.now();
  if (!next_) {
    failing_since_ = now;
    log::warning("{} does not answer and is tried again: {}", what_, error.message());
  } else if (patience_ && now - failing_since_ > *patience_) {
    throw error;
  }
  next_ = now + backoff_;
  backoff_ = std::min(backoff_ * 2, kLongest);
}

void Retry::succeeded() {
  log::info("{} answers again", what_);
  next_.reset();
  backoff_ = kFirst;
}

}  // namespace kolo

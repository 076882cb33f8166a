#include "base/interrupt.h"

#include <atomic>

#include "base/errors.h"

namespace kolo {
namespace {

std::atomic<InterruptCheck> interrupt_check{nullptr};

}  // namespace

void set_interrupt_check(InterruptCheck check) noexcept { interrupt_check = check; }

bool is_interrupted() noexcept {
  const InterruptCheck check = interrupt_check;
  return check != nullptr && check();
}

void throw_if_interrupted() {
  if (is_interrupted()) throw_error(ErrorCode::cancelled, "the wait was interrupted by a signal");
}

}  // namespace kolo

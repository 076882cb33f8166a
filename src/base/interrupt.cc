#include "base/interrupt.h"

#include <atomic>

#include "base/errors.h"

namespace kolo {
namespace {

std::atomic<InterruptCheck> interrupt_check{nullptr};

}  // namespace

void set_interrupt_check(InterruptCheck check) noexcept { interrupt_check = check; }

void throw_if_interrupted() {
  const InterruptCheck check = interrupt_check;
  if (check != nullptr && check())
    throw_error(ErrorCode::cancelled, "the wait was interrupted by a signal");
}

}  // namespace kolo

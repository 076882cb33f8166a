// A way out of long waits, for programs that have one thread for everything: an interpreter whose
// user presses Ctrl-C.
#pragma once

namespace kolo {

/// Called by waits before they sleep, and again after each slice of it (50 ms), on the thread that
/// waits. True ends the wait with `cancelled`; what was waited for is then as after a timeout.
using InterruptCheck = bool (*)() noexcept;

/// For the whole process; null takes it away.
void set_interrupt_check(InterruptCheck check) noexcept;

/// Throws cancelled if the check says so.
void throw_if_interrupted();

}  // namespace kolo

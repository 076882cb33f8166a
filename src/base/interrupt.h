// A way out of long waits, for programs that are told to end by a signal while one of their threads
// waits: an interpreter whose user presses Ctrl-C, a launcher whose database is away.
#pragma once

#include <chrono>

namespace kolo {

/// For an answer that is still wanted by a program that was told to end.
inline constexpr std::chrono::seconds kPatienceWhenInterrupted{2};

/// Called by waits before they sleep, and again after each slice of it (50 ms), on the thread that
/// waits. True ends the wait with `cancelled`; what was waited for is then as after a timeout.
using InterruptCheck = bool (*)() noexcept;

/// For the whole process; null takes it away.
void set_interrupt_check(InterruptCheck check) noexcept;

/// What the check says; false without one. For waits that end in their own way.
[[nodiscard]] bool is_interrupted() noexcept;

/// Throws cancelled if the check says so.
void throw_if_interrupted();

}  // namespace kolo

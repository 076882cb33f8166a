// Calls into kolo that may wait: without the interpreter's lock, and with a way out for Ctrl-C.
#pragma once

#include <pybind11/pybind11.h>

#include <exception>
#include <optional>
#include <type_traits>

namespace kolo::python {

/// Lets waits of the main thread run the interpreter's signal handlers. Once, at import.
void watch_signals();

/// While it lives, the thread does not hold the interpreter's lock.
///
/// restore() is a call and not the destructor: in an interpreter that is shutting down it ends the
/// thread by an exception of the C library, which must not leave a destructor.
class Unlocked {
 public:
  Unlocked();
  void restore();

 private:
  PyThreadState* state_;
};

/// Throws the pending Python exception instead of kolo's own if a signal handler raised one.
[[noreturn]] void rethrow(const std::exception_ptr& error);

/// What `action` returns. It must not touch Python.
template <class Action>
auto blocking(Action&& action) {
  using Result = std::invoke_result_t<Action>;
  std::exception_ptr error;
  Unlocked unlocked;
  if constexpr (std::is_void_v<Result>) {
    try {
      action();
    } catch (...) {
      error = std::current_exception();
    }
    unlocked.restore();
    if (error) rethrow(error);
  } else {
    std::optional<Result> result;
    try {
      result.emplace(action());
    } catch (...) {
      error = std::current_exception();
    }
    unlocked.restore();
    if (error) rethrow(error);
    return std::move(*result);
  }
}

}  // namespace kolo::python

// Calls into kolo that may wait: without the interpreter's lock, and with a way out for Ctrl-C. And
// the way back: threads of kolo that call Python.
//
// An interpreter that is shutting down ends each other thread that wants its lock, by an exception
// of the C library, which unwinds it. Unwound without the lock, objects of Python would be let go,
// and destructors would wait for the lock again. So such a thread stops where it is, until the
// process has ended.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>

#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

namespace kolo::python {

/// Lets waits of the main thread run the interpreter's signal handlers. Once, at import.
void watch_signals();

/// Does not return.
[[noreturn]] void stay_until_exit() noexcept;

/// What `action` returns, which may want the lock.
template <class Action>
auto or_stay(Action&& action) {
  try {
    return action();
  } catch (abi::__forced_unwind&) {
    stay_until_exit();
  }
}

/// The interpreter's lock, for a thread of kolo. Use with_lock().
class Lock {
 public:
  Lock();
  ~Lock();
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  PyGILState_STATE state_;
};

/// What `action` returns, which has the lock.
template <class Action>
auto with_lock(Action&& action) {
  const Lock lock;
  return or_stay(std::forward<Action>(action));
}

/// Calls Python, with the lock. Throws error_already_set. No object is let go if the interpreter
/// ends the thread inside.
template <class... Arguments>
pybind11::object call_python(pybind11::handle function, Arguments&&... arguments) {
  const pybind11::tuple all = pybind11::make_tuple(std::forward<Arguments>(arguments)...);
  PyObject* result = or_stay([&] { return PyObject_Call(function.ptr(), all.ptr(), nullptr); });
  if (result == nullptr) throw pybind11::error_already_set();
  return pybind11::reinterpret_steal<pybind11::object>(result);
}

/// While it lives, the thread does not hold the interpreter's lock.
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

#include "blocking.h"

#include <unistd.h>

#include "base/errors.h"
#include "base/interrupt.h"
#include "runtime.h"

namespace kolo::python {
namespace {

namespace py = pybind11;

/// Only the main thread runs signal handlers, and only while it waits in a call from Python.
thread_local bool is_main_thread_waiting = false;
unsigned long main_thread = 0;

bool has_to_end_wait() noexcept {
  if (has_to_leave()) return true;
  if (!is_main_thread_waiting) return false;
  const PyGILState_STATE lock = PyGILState_Ensure();
  const bool raised = PyErr_CheckSignals() != 0;
  PyGILState_Release(lock);
  return raised;
}

}  // namespace

void watch_signals() {
  main_thread =
      py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  set_interrupt_check(&has_to_end_wait);
}

void stay_until_exit() noexcept {
  for (;;) ::pause();
}

// An interpreter that has ended has no lock to wait for. Its own thread may still let objects go.
Lock::Lock() {
  if (Py_IsInitialized() == 0 && PyThread_get_thread_ident() != main_thread) stay_until_exit();
  state_ = or_stay([] { return PyGILState_Ensure(); });
}

Lock::~Lock() {
  or_stay([this] { PyGILState_Release(state_); });
}

Unlocked::Unlocked() : state_(PyEval_SaveThread()) {
  is_main_thread_waiting = PyThread_get_thread_ident() == main_thread;
}

void Unlocked::restore() {
  is_main_thread_waiting = false;
  or_stay([this] { PyEval_RestoreThread(state_); });
}

void rethrow(const std::exception_ptr& error) {
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (has_to_leave())
    throw_error(ErrorCode::cancelled, "kolo was shut down by another thread before this had ended");
  std::rethrow_exception(error);
}

}  // namespace kolo::python

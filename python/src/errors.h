// kolo::Error as Python exceptions; the classes are those of kolo/_errors.py.
#pragma once

#include "kolo/error.h"

namespace kolo::python {

/// An operation between ranks failed while it was under way. Horovod's users catch
/// HorovodInternalError then, whatever the code is.
struct OperationFailed {
  Error error;
};

/// Once, at import.
void translate_errors();

/// Runs the action; an Error that it throws becomes OperationFailed.
template <class Action>
auto as_operation(Action&& action) {
  try {
    return action();
  } catch (const Error& error) {
    throw OperationFailed{error};
  }
}

}  // namespace kolo::python

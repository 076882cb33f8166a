// Functions and classes of Python as trainables of a study.
#pragma once

#include <pybind11/pybind11.h>

#include "kolo/tune/trainable.h"

namespace kolo::python {

/// `is_class`: `object()` makes an instance with setup, step, save_checkpoint, load_checkpoint and
/// cleanup. Else it is a function of the configuration, which reports by itself.
tune::Runnable to_runnable(pybind11::object object, bool is_class, const std::string& name);

/// The text of a Python exception with the place where it was raised.
std::string describe_exception(pybind11::error_already_set& error);

}  // namespace kolo::python

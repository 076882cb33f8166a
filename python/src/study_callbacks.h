// What a study calls of Python while it runs: callbacks and stopping rules.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "kolo/search/stopper.h"
#include "kolo/tune/callback.h"
#include "values.h"

namespace kolo::python {

/// A callback of the user: `object(event, trial)` is called with the name of each event.
std::shared_ptr<tune::StudyCallback> python_callback(pybind11::object object);

/// Rules in Python: `trial` for each result, and `study`, which may be None, for the whole study.
std::unique_ptr<search::Stopper> python_stopper(Held trial, Held study);

}  // namespace kolo::python

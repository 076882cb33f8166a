// The parts of the module kolo._core.
#pragma once

#include <pybind11/pybind11.h>

namespace kolo::python {

void bind_runtime(pybind11::module_& m);
void bind_operations(pybind11::module_& m);
void bind_gradient_buckets(pybind11::module_& m);

}  // namespace kolo::python

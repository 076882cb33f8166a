// The parts of the module kolo._core.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "kolo/search/space.h"

namespace kolo::python {

void bind_runtime(pybind11::module_& m);
void bind_operations(pybind11::module_& m);
void bind_gradient_buckets(pybind11::module_& m);
void bind_search(pybind11::module_& m);
void bind_study(pybind11::module_& m);
void bind_elastic(pybind11::module_& m);
void bind_tensorflow(pybind11::module_& m);
void bind_xla(pybind11::module_& m);

/// Of an object of the class Space.
std::shared_ptr<const search::Space> space_of(pybind11::handle object);

}  // namespace kolo::python

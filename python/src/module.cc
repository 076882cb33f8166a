// kolo._core: what Python programs use of kolo. It links no framework: tensors come as addresses,
// shapes and element types, so one module serves every version of every framework.
#include "module.h"

#include "blocking.h"
#include "errors.h"
#include "kolo/version.h"

PYBIND11_MODULE(_core, m) {
  m.doc() = "The compiled part of kolo. Use the package kolo instead.";
  m.attr("__version__") = KOLO_VERSION;
  kolo::python::translate_errors();
  kolo::python::watch_signals();
  kolo::python::bind_runtime(m);
  kolo::python::bind_operations(m);
  kolo::python::bind_gradient_buckets(m);
  kolo::python::bind_search(m);
  kolo::python::bind_study(m);
  kolo::python::bind_elastic(m);
  kolo::python::bind_tensorflow(m);
  kolo::python::bind_xla(m);
}

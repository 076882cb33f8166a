#include "errors.h"

#include <pybind11/pybind11.h>

#include <string>

namespace kolo::python {
namespace {

namespace py = pybind11;

void raise(const Error& error, bool in_operation) {
  const py::object rank = error.rank() ? py::cast(*error.rank()) : py::object(py::none());
  const py::object exception = py::module_::import("kolo._errors")
                                   .attr("make_error")(std::string(to_string(error.code())),
                                                       error.message(), rank, in_operation);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
}

}  // namespace

void translate_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const OperationFailed& failure) {
      raise(failure.error, true);
    } catch (const Error& error) {
      raise(error, false);
    }
  });
}

}  // namespace kolo::python

// Configurations and metrics between Python and kolo.
#pragma once

#include <pybind11/pybind11.h>

#include <memory>

#include "kolo/search/domain.h"
#include "kolo/search/space.h"
#include "kolo/search/value.h"

namespace kolo::python {

/// None, bool, int, float, str, lists, tuples and dictionaries of these, and numbers of NumPy and
/// of tensors. Throws invalid_argument naming `path`. Needs the interpreter's lock.
search::Value to_value(pybind11::handle object, const std::string& path = "");
pybind11::object to_python(const search::Value& value);

/// A search space: dictionaries and lists with objects of kolo.tune at their leaves.
search::Spec to_spec(pybind11::handle object, const std::string& path = "");
search::Clause to_clause(pybind11::handle object);

/// A Python object that C++ keeps: it is let go with the lock held, and not at all if the
/// interpreter is gone.
class Held {
 public:
  explicit Held(pybind11::object object);
  /// To be called with the lock.
  [[nodiscard]] const pybind11::object& get() const { return *object_; }

 private:
  std::shared_ptr<pybind11::object> object_;
};

}  // namespace kolo::python

// The order of the tests matters: a bool of Python is an int as well, so it is tested before
// numbers, and a number that has an index is taken as a whole one. Errors of a failed conversion
// are cleared, because a pending Python error would appear in an unrelated call later. Domains and
// clauses arrive as plain tuples and dictionaries, which the Python package makes; the C++ classes
// need no bindings then. Values are converted by recursion, whose depth is limited, because values
// of Python may contain themselves. A C++ exception cannot pass through Python code: sample_from
// stores it, raises KeyError, and throws the stored one when the Python function has ended with an
// error.
#include "values.h"

#include <map>

#include "base/errors.h"
#include "blocking.h"

namespace kolo::python {
namespace {

namespace py = pybind11;
using search::Domain;
using search::Spec;
using search::Value;

/// Far below what decode() reads (kDeepestJson), which reports reach inside of a message.
constexpr int kDeepestValue = 100;

/// Before a value at this depth is converted: one that contains itself has no end.
void check_depth(int depth, const std::string& path) {
  if (depth <= kDeepestValue) return;
  const std::string first = path.substr(0, path.find('/'));
  throw_error(ErrorCode::invalid_argument,
              "'{}': a value is nested more than {} deep, or contains itself", first,
              kDeepestValue);
}

Value value_at(py::handle object, const std::string& path, int depth);
Spec spec_at(py::handle object, const std::string& path, int depth);

std::string below(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "/" + key;
}

std::string key_of(py::handle key, const std::string& path) {
  if (!py::isinstance<py::str>(key))
    throw_error(ErrorCode::invalid_argument, "'{}': keys must be texts, not {}", path,
                py::repr(key).cast<std::string>());
  return key.cast<std::string>();
}

/// Numbers of NumPy, tensors with one element and the like.
std::optional<Value> number(py::handle object) {
  // Arrays and tensors have __index__ whatever they hold, and refuse it when that is no integer.
  if (const auto index = py::reinterpret_steal<py::object>(
          PyIndex_Check(object.ptr()) != 0 ? PyNumber_Index(object.ptr()) : nullptr)) {
    const long long whole = PyLong_AsLongLong(index.ptr());
    if (whole == -1 && PyErr_Occurred() != nullptr) {
      PyErr_Clear();
      return std::nullopt;
    }
    return Value(whole);
  }
  PyErr_Clear();
  if (!py::hasattr(object, "__float__")) return std::nullopt;
  const auto converted = py::reinterpret_steal<py::object>(PyNumber_Float(object.ptr()));
  if (!converted) {
    PyErr_Clear();
    return std::nullopt;
  }
  return Value(PyFloat_AsDouble(converted.ptr()));
}

/// The configuration that a function of sample_from sees. If reading a value means that the
/// function has to be put off, the reason travels through Python and is thrown again behind it.
struct View {
  const search::ConfigView* view = nullptr;
  std::exception_ptr why{};

  /// Of a dictionary its names alone: of its values, one may be the function's own.
  py::object at(const std::string& path) {
    try {
      if (const auto names = view->names_in(path)) {
        py::dict items;
        for (const std::string& name : *names) items[py::str(name)] = py::none();
        return items;
      }
      return to_python(view->at(path));
    } catch (...) {
      why = std::current_exception();
      throw py::key_error(path);
    }
  }
};

search::SampleFunction sample_function(py::object function) {
  return [held = Held(std::move(function))](const search::ConfigView& view) {
    return with_lock([&] {
      auto seen = std::make_shared<View>(View{&view});
      const py::cpp_function read([seen](const std::string& path) { return seen->at(path); });
      try {
        return to_value(call_python(held.get(), read));
      } catch (py::error_already_set& error) {
        if (seen->why) std::rethrow_exception(seen->why);
        throw_error(ErrorCode::invalid_argument, "sample_from: {}", error.what());
      }
    });
  };
}

std::vector<Value> list_of(py::handle object, const std::string& path, int depth) {
  std::vector<Value> values;
  for (const py::handle item : object) values.push_back(value_at(item, path, depth));
  return values;
}

using Arguments = py::tuple;
double at(const Arguments& arguments, std::size_t place) { return arguments[place].cast<double>(); }

Domain domain_of(const std::string& kind, const Arguments& a, const std::string& path, int depth) {
  using namespace search;
  const auto prior = [&](std::size_t place) {
    return a[place].cast<std::string>() == "log-uniform" ? Prior::log_uniform : Prior::uniform;
  };
  if (kind == "uniform") return uniform(at(a, 0), at(a, 1));
  if (kind == "quniform") return quniform(at(a, 0), at(a, 1), at(a, 2));
  if (kind == "loguniform") return loguniform(at(a, 0), at(a, 1));
  if (kind == "qloguniform") return qloguniform(at(a, 0), at(a, 1), at(a, 2));
  if (kind == "randn") return randn(at(a, 0), at(a, 1));
  if (kind == "qrandn") return qrandn(at(a, 0), at(a, 1), at(a, 2));
  if (kind == "randint") return randint(at(a, 0), at(a, 1));
  if (kind == "qrandint") return qrandint(at(a, 0), at(a, 1), at(a, 2));
  if (kind == "lograndint") return lograndint(at(a, 0), at(a, 1));
  if (kind == "qlograndint") return qlograndint(at(a, 0), at(a, 1), at(a, 2));
  if (kind == "real") return real(at(a, 0), at(a, 1), prior(2));
  if (kind == "integer") return integer(at(a, 0), at(a, 1), prior(2));
  if (kind == "normal") return normal(at(a, 0), at(a, 1), at(a, 2), at(a, 3));
  if (kind == "normal_integer") return normal_integer(at(a, 0), at(a, 1), at(a, 2), at(a, 3));
  if (kind == "choice") return choice(list_of(a[0], path, depth + 1));
  if (kind == "ordinal") return ordinal(list_of(a[0], path, depth + 1));
  if (kind == "categorical")
    return categorical(list_of(a[0], path, depth + 1), a[1].cast<std::vector<double>>());
  if (kind == "grid_search") {
    std::vector<Spec> entries;
    // Lists and dictionaries are values like any other here.
    for (const py::handle item : a[0])
      entries.push_back(py::hasattr(item, "_kolo_domain") ? spec_at(item, path, depth + 1)
                                                          : Spec(value_at(item, path, depth + 1)));
    return grid_search(std::move(entries));
  }
  if (kind == "sample_from") return sample_from(sample_function(a[0]));
  throw_error(ErrorCode::invalid_argument, "'{}': {} is not a domain", path, kind);
}

Value value_at(py::handle object, const std::string& path, int depth) {
  check_depth(depth, path);
  if (object.is_none()) return {};
  if (py::isinstance<py::bool_>(object)) return Value(object.cast<bool>());
  if (py::isinstance<py::float_>(object)) return Value(object.cast<double>());
  if (py::isinstance<py::str>(object)) return Value(object.cast<std::string>());
  if (py::isinstance<py::dict>(object)) {
    Value::Dict items;
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(object)) {
      const std::string name = key_of(key, path);
      items.emplace(name, value_at(item, below(path, name), depth + 1));
    }
    return items;
  }
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    Value::List items;
    for (const py::handle item : object)
      items.push_back(value_at(item, below(path, std::to_string(items.size())), depth + 1));
    return items;
  }
  if (auto known = number(object)) return *known;
  throw_error(ErrorCode::invalid_argument,
              "{}: a value of type {} is neither a number nor a truth, a text, a list or a "
              "dictionary",
              path.empty() ? "the value" : "'" + path + "'",
              py::str(py::type::of(object)).cast<std::string>());
}

Spec spec_at(py::handle object, const std::string& path, int depth) {
  check_depth(depth, path);
  if (py::hasattr(object, "_kolo_domain")) {
    const py::tuple domain = object.attr("_kolo_domain");
    return domain_of(domain[0].cast<std::string>(), domain[1].cast<py::tuple>(), path, depth);
  }
  if (py::isinstance<py::dict>(object)) {
    Spec::Dict items;
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(object)) {
      const std::string name = key_of(key, path);
      items.emplace(name, spec_at(item, below(path, name), depth + 1));
    }
    return items;
  }
  if (py::isinstance<py::list>(object) || py::isinstance<py::tuple>(object)) {
    Spec::List items;
    for (const py::handle item : object)
      items.push_back(spec_at(item, below(path, std::to_string(items.size())), depth + 1));
    return items;
  }
  return value_at(object, path, depth);
}

search::Clause clause_at(py::handle object, int depth) {
  check_depth(depth, "clauses");
  using Kind = search::Clause::Kind;
  static const std::map<std::string, Kind> kinds{
      {"equals", Kind::equals}, {"not_equals", Kind::not_equals},
      {"less", Kind::less},     {"greater", Kind::greater},
      {"in", Kind::in},         {"same", Kind::same},
      {"all_of", Kind::all_of}, {"any_of", Kind::any_of}};
  const auto items = py::reinterpret_borrow<py::dict>(object);
  search::Clause clause;
  const auto kind = kinds.find(items["kind"].cast<std::string>());
  if (kind == kinds.end()) throw_error(ErrorCode::invalid_argument, "the condition is unknown");
  clause.kind = kind->second;
  if (items.contains("path")) clause.path = items["path"].cast<std::string>();
  if (items.contains("values")) clause.values = list_of(items["values"], clause.path, 0);
  if (items.contains("other")) clause.other = items["other"].cast<std::string>();
  if (items.contains("clauses"))
    for (const py::handle part : items["clauses"])
      clause.clauses.push_back(clause_at(part, depth + 1));
  return clause;
}

}  // namespace

Held::Held(py::object object)
    : object_(new py::object(std::move(object)), [](py::object* gone) {
        if (Py_IsInitialized() == 0) return;
        with_lock([&] { delete gone; });
      }) {}

Value to_value(py::handle object, const std::string& path) { return value_at(object, path, 0); }

py::object to_python(const Value& value) {
  if (value.is_nothing()) return py::none();
  if (value.is_bool()) return py::bool_(value.as_bool());
  if (value.is_integer()) return py::int_(value.as_integer());
  if (value.is_number()) return py::float_(value.as_number());
  if (value.is_string()) return py::str(value.as_string());
  if (value.is_list()) {
    py::list items;
    for (const Value& item : value.as_list()) items.append(to_python(item));
    return items;
  }
  py::dict items;
  for (const auto& [key, item] : value.as_dict()) items[py::str(key)] = to_python(item);
  return items;
}

Spec to_spec(py::handle object, const std::string& path) { return spec_at(object, path, 0); }

search::Clause to_clause(py::handle object) { return clause_at(object, 0); }

}  // namespace kolo::python

#include "trainables.h"

#include <unistd.h>

#include "blocking.h"
#include "kolo/tune/session.h"
#include "values.h"

namespace kolo::python {
namespace {

namespace py = pybind11;

/// Ends a process that a trial has forked: behind the trial, threads wait for it that are not
/// there.
void leave_fork(pid_t trial, const py::object& error) {
  if (::getpid() != trial)
    call_python(py::module_::import("kolo.tune._session").attr("leave_fork"), error);
}

/// Calls Python with the lock. An exception becomes the failure of the trial, except the one by
/// which a trial that has to stop unwinds.
template <class Action>
auto with_python(Action&& action) {
  return with_lock([&, process = ::getpid()] {
    try {
      if constexpr (std::is_void_v<decltype(action())>) {
        action();
        leave_fork(process, py::none());
      } else {
        auto result = action();
        leave_fork(process, py::none());
        return result;
      }
    } catch (py::error_already_set& error) {
      leave_fork(process, error.value());
      if (error.matches(py::module_::import("kolo.tune._session").attr("TrialStopped")))
        throw tune::Stopped{};
      throw std::runtime_error(describe_exception(error));
    } catch (const std::exception& error) {  // of a value that is none of a result, for example
      leave_fork(process, py::module_::import("builtins").attr("RuntimeError")(error.what()));
      throw;
    }
  });
}

class PythonTrainable final : public tune::Trainable {
 public:
  explicit PythonTrainable(const Held& factory)
      : self_(with_python([&] { return Held(call_python(factory.get())); })) {}

  void setup(const tune::Config& config) override {
    with_python([&] { call_python(self_.get().attr("setup"), to_python(config)); });
  }
  tune::Value step() override {
    return with_python([&] { return to_value(call_python(self_.get().attr("step"))); });
  }
  void save(const std::filesystem::path& directory) override {
    with_python([&] { call_python(self_.get().attr("save"), directory.string()); });
  }
  void load(const std::filesystem::path& directory) override {
    with_python([&] { call_python(self_.get().attr("load"), directory.string()); });
  }
  void cleanup() override {
    with_python([&] { call_python(self_.get().attr("cleanup")); });
  }

 private:
  Held self_;
};

}  // namespace

std::string describe_exception(py::error_already_set& error) {
  const py::object trace = error.trace() ? error.trace() : py::object(py::none());
  return call_python(py::module_::import("kolo.tune._session").attr("describe_exception"),
                     error.value(), trace)
      .cast<std::string>();
}

tune::Runnable to_runnable(py::object object, bool is_class, const std::string& name) {
  const Held held(std::move(object));
  if (is_class) return {[held] { return std::make_unique<PythonTrainable>(held); }, name};
  return tune::Runnable([held](const tune::Config& config, tune::Session&) {
           with_python([&] { call_python(held.get(), to_python(config)); });
         })
      .named(name);
}

}  // namespace kolo::python

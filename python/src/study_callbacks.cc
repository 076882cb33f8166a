#include "study_callbacks.h"

#include <utility>

#include "base/errors.h"
#include "blocking.h"
#include "study_results.h"
#include "trainables.h"

namespace kolo::python {
namespace {

namespace py = pybind11;
using tune::Value;

class PythonCallback final : public tune::StudyCallback {
 public:
  explicit PythonCallback(py::object object) : held_(std::move(object)) {}
  void on_trial_start(const tune::TrialInfo& trial) override { call("on_trial_start", trial); }
  void on_trial_result(const tune::TrialInfo& trial, const Value&) override {
    call("on_trial_result", trial);
  }
  void on_trial_save(const tune::TrialInfo& trial) override { call("on_trial_save", trial); }
  void on_trial_complete(const tune::TrialInfo& trial) override {
    call("on_trial_complete", trial);
  }
  void on_trial_error(const tune::TrialInfo& trial) override { call("on_trial_error", trial); }

 private:
  void call(const char* name, const tune::TrialInfo& trial);
  Held held_;
};

void PythonCallback::call(const char* name, const tune::TrialInfo& trial) {
  with_lock([&] {
    try {
      call_python(held_.get(), name, info_to_python(trial));
    } catch (py::error_already_set& error) {
      throw_error(ErrorCode::invalid_argument, "callback {}: {}", name, describe_exception(error));
    }
  });
}

class PythonStopper final : public search::Stopper {
 public:
  PythonStopper(Held trial, Held study) : trial_(std::move(trial)), study_(std::move(study)) {}

  bool stop(search::TrialId trial, const Value& result) override {
    return ask([&] {
      return call_python(trial_.get(), static_cast<std::uint64_t>(trial), to_python(result))
          .cast<bool>();
    });
  }
  [[nodiscard]] bool stop_all(std::chrono::duration<double>) const override {
    return ask([&] { return !study_.get().is_none() && call_python(study_.get()).cast<bool>(); });
  }

 private:
  template <class Question>
  static bool ask(Question question) {
    return with_lock([&] {
      try {
        return question();
      } catch (py::error_already_set& error) {
        throw_error(ErrorCode::invalid_argument, "stop: {}", describe_exception(error));
      }
    });
  }
  Held trial_, study_;
};

}  // namespace

std::shared_ptr<tune::StudyCallback> python_callback(py::object object) {
  return std::make_shared<PythonCallback>(std::move(object));
}

std::unique_ptr<search::Stopper> python_stopper(Held trial, Held study) {
  return std::make_unique<PythonStopper>(std::move(trial), std::move(study));
}

}  // namespace kolo::python

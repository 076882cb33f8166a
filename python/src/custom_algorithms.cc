// Searches, schedulers and allocations that are written in Python, as the controller sees them. The
// objects that it calls are those of kolo/tune/_custom.py and kolo/tune/schedulers/_allocations.py.
#include "custom_algorithms.h"

#include <pybind11/stl.h>

#include "base/errors.h"
#include "blocking.h"
#include "trainables.h"

namespace kolo::python {
namespace {

namespace py = pybind11;
using search::Action;
using search::Decision;

/// Calls a function of the object. What it raises ends the study.
template <class... Arguments>
py::object call(const Held& object, const char* what, Arguments&&... arguments) {
  try {
    return call_python(object.get().attr(what), std::forward<Arguments>(arguments)...);
  } catch (py::error_already_set& error) {
    throw_error(ErrorCode::invalid_argument, "{}: {}",
                object.get().attr("label").cast<std::string>(), describe_exception(error));
  }
}

/// Its points are the numbers of trials: what a trial is given is a function of that number in the
/// space, because a search of somebody's own may suggest anything.
class PythonSampler final : public search::Sampler {
 public:
  PythonSampler(std::shared_ptr<const search::Space> space, search::SamplerOptions options,
                Held object)
      : Sampler("python", std::move(space), std::move(options), StartingPoints::own),
        object_(std::move(object)) {}

  [[nodiscard]] bool exhausted() const override {
    return with_lock([&] { return call(object_, "is_finished").cast<bool>(); });
  }

 protected:
  std::vector<search::Point> propose(std::size_t count) override {
    return with_lock([&] {
      std::vector<search::Point> points;
      while (points.size() < count) {
        const std::uint64_t number = asked() + points.size();
        if (!call(object_, "suggest", number).cast<bool>()) break;
        points.push_back({static_cast<double>(number)});
      }
      return points;
    });
  }
  void on_tell(std::size_t place) override {
    const search::Trial& trial = trials()[place];
    if (!trial.id) return;
    with_lock([&] {
      call(object_, "end", static_cast<std::uint64_t>(*trial.id),
           trial.state == search::TrialState::failed);
    });
  }

 private:
  Held object_;
};

class PythonScheduler final : public search::Scheduler {
 public:
  /// The name is that of one which needs no metric.
  PythonScheduler(search::SchedulerOptions options, Held object)
      : Scheduler("fifo", std::move(options)), object_(std::move(object)) {}

 protected:
  void on_add(Slot slot) override {
    with_lock([&] { call(object_, "add", number_of(slot), to_python(config_of(slot))); });
  }
  Decision on_result(Slot slot, const search::Result&, std::span<const double>) override {
    return with_lock([&] {
      const auto answer = call(object_, "decide", number_of(slot)).cast<std::string>();
      Decision decision;
      decision.action = answer == "STOP"    ? Action::stop
                        : answer == "PAUSE" ? Action::pause
                                            : Action::proceed;
      if (decision.action != Action::proceed) decision.reason.rule = "python";
      return decision;
    });
  }
  void on_end(Slot slot, bool failed) override {
    with_lock([&] { call(object_, "end", number_of(slot), failed); });
  }
  [[nodiscard]] std::optional<Slot> choose(std::span<const Slot> waiting) const override {
    return with_lock([&]() -> std::optional<Slot> {
      py::list numbers;
      for (const Slot slot : waiting) numbers.append(number_of(slot));
      const py::object chosen = call(object_, "choose", numbers);
      if (chosen.is_none()) return std::nullopt;
      return waiting[chosen.cast<std::size_t>()];
    });
  }

 private:
  [[nodiscard]] std::uint64_t number_of(Slot slot) const {
    return static_cast<std::uint64_t>(entry(slot).id);
  }
  Held object_;
};

}  // namespace

std::unique_ptr<search::Sampler> python_sampler(std::shared_ptr<const search::Space> space,
                                                search::SamplerOptions options, Held object) {
  return std::make_unique<PythonSampler>(std::move(space), std::move(options), std::move(object));
}

std::unique_ptr<search::Scheduler> python_scheduler(search::SchedulerOptions options, Held object) {
  return std::make_unique<PythonScheduler>(std::move(options), std::move(object));
}

tune::ResourceAllocation python_allocation(Held object) {
  return [object = std::move(object)](const tune::RankShares& shares) {
    return with_lock([&] {
      py::list trials;
      for (const auto& trial : shares.trials)
        trials.append(py::make_tuple(trial.number, trial.ranks, trial.iteration, trial.value));
      return call(object, "allocate", trials, shares.ranks, shares.range.least, shares.range.most,
                  shares.direction == search::Direction::maximize ? "max" : "min")
          .cast<std::vector<int>>();
    });
  };
}

}  // namespace kolo::python

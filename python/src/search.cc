// Spaces and samplers, for loops of one's own: ask, evaluate, tell.
#include "kolo/search.h"

#include <pybind11/stl.h>

#include "base/errors.h"
#include "blocking.h"
#include "module.h"
#include "values.h"

namespace kolo::python {
namespace {

namespace py = pybind11;
using namespace search;

/// Spaces do not change.
struct SharedSpace {
  std::shared_ptr<const Space> space;
};

SharedSpace make_space(py::handle spec, const py::list& conditions, const py::list& forbidden,
                       const py::object& constraint, const py::list& starting_points) {
  Space::Builder builder(to_spec(spec));
  for (const py::handle item : conditions) {
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    builder.condition(pair[0].cast<std::string>(), to_clause(pair[1]));
  }
  for (const py::handle item : forbidden) builder.forbid(to_clause(item));
  if (!constraint.is_none())
    builder.constraint([held = Held(constraint)](const Value& config) {
      return with_lock([&] { return call_python(held.get(), to_python(config)).cast<bool>(); });
    });
  for (const py::handle item : starting_points) builder.starting_point(to_value(item));
  return {builder.build()};
}

/// A sampler with the space that makes configurations of its points.
class AskTell {
 public:
  AskTell(const SharedSpace& shared, const std::string& name,
          const std::vector<std::string>& directions, std::uint64_t seed, const py::dict& settings,
          const py::list& points)
      : space_(shared.space), random_(Random(seed).stream("configuration")) {
    SamplerOptions options;
    options.seed = seed;
    options.directions.clear();
    for (const std::string& direction : directions)
      options.directions.push_back(direction == "maximize" ? Direction::maximize
                                                           : Direction::minimize);
    for (const auto& [key, value] : settings)
      options.settings.emplace(key.cast<std::string>(), to_value(value));
    for (const py::handle point : points) options.points_to_evaluate.push_back(to_value(point));
    sampler_ = make_sampler(name, space_, std::move(options));
  }

  /// Pairs of a number and a configuration; fewer than asked for mean "not now".
  py::list ask(std::size_t count) {
    std::vector<TrialId> ids;
    for (std::size_t i = 0; i < count; ++i) ids.push_back(TrialId{next_ + i});
    const auto points = sampler_->ask(ids);
    py::list asked;
    for (std::size_t i = 0; i < count; ++i) {
      if (!points[i]) continue;
      Random random = random_.stream("trial", next_ + i);
      asked.append(py::make_tuple(next_ + i, to_python(space_->config(*points[i], random))));
    }
    next_ += count;
    return asked;
  }
  void tell(std::uint64_t id, const std::vector<double>& values, const std::string& state,
            const std::vector<double>& constraints) {
    Outcome outcome;
    outcome.values = values;
    outcome.constraints = constraints;
    outcome.state = state == "failed"   ? TrialState::failed
                    : state == "pruned" ? TrialState::pruned
                                        : TrialState::complete;
    sampler_->tell(TrialId{id}, outcome);
  }
  void report(std::uint64_t id, double budget, const std::vector<double>& values) {
    sampler_->report(TrialId{id}, budget, values);
  }
  void add(py::handle config, const std::vector<double>& values) {
    sampler_->add(space_->point(to_value(config)),
                  values.empty() ? Outcome::failed() : Outcome::complete(values));
  }
  [[nodiscard]] bool exhausted() const { return sampler_->exhausted(); }
  [[nodiscard]] std::string explain() const { return sampler_->explain(); }
  [[nodiscard]] const std::string& name() const { return sampler_->name(); }

 private:
  std::shared_ptr<const Space> space_;
  Random random_;
  std::unique_ptr<Sampler> sampler_;
  std::uint64_t next_ = 0;
};

/// A scheduler that is asked about one metric, trial by trial.
class ScheduleByHand {
 public:
  ScheduleByHand(const std::string& name, const std::string& mode, const py::dict& settings) {
    SchedulerOptions options;
    options.directions = {mode == "max" ? Direction::maximize : Direction::minimize};
    for (const auto& [key, value] : settings)
      options.settings.emplace(key.cast<std::string>(), to_value(value));
    scheduler_ = make_scheduler(name, std::move(options));
  }
  void add(std::uint64_t id) { scheduler_->add(TrialId{id}); }
  /// By Tune's names.
  std::string result(std::uint64_t id, double time, double value) {
    const Action action = scheduler_->result(TrialId{id}, {time, {value}}).action;
    return action == Action::stop ? "STOP" : action == Action::pause ? "PAUSE" : "CONTINUE";
  }
  void last_result(std::uint64_t id, double time, double value) {
    scheduler_->last_result(TrialId{id}, {time, {value}});
  }
  void complete(std::uint64_t id) { scheduler_->complete(TrialId{id}); }
  void fail(std::uint64_t id) { scheduler_->fail(TrialId{id}); }

 private:
  std::unique_ptr<Scheduler> scheduler_;
};

py::list names_of(const auto& infos) {
  py::list rows;
  for (const auto& info : infos)
    rows.append(py::make_tuple(std::string(info.name), std::string(info.summary)));
  return rows;
}

}  // namespace

std::shared_ptr<const Space> space_of(py::handle object) {
  return object.cast<SharedSpace&>().space;
}

void bind_search(py::module_& m) {
  py::class_<SharedSpace>(m, "Space", "What configurations there are.")
      .def(py::init(&make_space))
      .def("names",
           [](const SharedSpace& shared) {
             std::vector<std::string> names;
             for (const Parameter& parameter : shared.space->parameters())
               names.push_back(parameter.path);
             return names;
           })
      .def("check",
           [](const SharedSpace& shared, py::handle config) {
             static_cast<void>(shared.space->point(to_value(config)));
           })
      .def("sample", [](const SharedSpace& shared, std::uint64_t seed) {
        Random random(seed);
        const Point point = shared.space->sample(random);
        return to_python(shared.space->config(point, random));
      });
  py::class_<AskTell>(m, "Sampler", "An algorithm that proposes what to try next.")
      .def(py::init<const SharedSpace&, const std::string&, const std::vector<std::string>&,
                    std::uint64_t, const py::dict&, const py::list&>())
      .def("ask", &AskTell::ask)
      .def("tell", &AskTell::tell)
      .def("report", &AskTell::report)
      .def("add", &AskTell::add)
      .def("explain", &AskTell::explain)
      .def_property_readonly("exhausted", &AskTell::exhausted)
      .def_property_readonly("name", &AskTell::name);
  py::class_<ScheduleByHand>(m, "Scheduler", "An algorithm that decides which trials go on.")
      .def(py::init<const std::string&, const std::string&, const py::dict&>())
      .def("add", &ScheduleByHand::add)
      .def("result", &ScheduleByHand::result)
      .def("last_result", &ScheduleByHand::last_result)
      .def("complete", &ScheduleByHand::complete)
      .def("fail", &ScheduleByHand::fail);
  m.def("samplers", [] { return names_of(samplers()); });
  m.def("schedulers", [] { return names_of(schedulers()); });
}

}  // namespace kolo::python

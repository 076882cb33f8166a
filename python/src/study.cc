// Studies from Python: tune.run, and what trials say to their study.
//
// The controller runs on a thread of its own; the calling thread waits for it and runs signal
// handlers, so that Ctrl-C stops the study, which can be resumed.
#include "tune/study/study.h"

#include <pybind11/stl.h>

#include <atomic>
#include <cmath>
#include <thread>

#include "base/errors.h"
#include "base/mutex.h"
#include "blocking.h"
#include "custom_algorithms.h"
#include "kolo/tune.h"
#include "module.h"
#include "study_callbacks.h"
#include "study_results.h"
#include "trainables.h"
#include "tune/executor/executors.h"
#include "tune/executor/self_executor.h"
#include "tune/output/progress.h"
#include "tune/protocol/trial_client.h"
#include "tune/protocol/trial_protocol.h"
#include "tune/study/cluster_study.h"
#include "tune/study/resource_pool.h"
#include "values.h"

namespace kolo::python {
namespace {

namespace py = pybind11;
using tune::Value;

// --- options
// --------------------------------------------------------------------------------------

/// Entries of a dictionary that has all of them.
class Reader {
 public:
  explicit Reader(py::dict items) : items_(std::move(items)) {}

  [[nodiscard]] py::object at(const char* name) const { return items_[name]; }
  [[nodiscard]] bool has(const char* name) const { return !at(name).is_none(); }
  template <class T>
  void read(const char* name, T& into) const {
    if (has(name)) into = at(name).cast<T>();
  }
  void read(const char* name, std::optional<std::chrono::duration<double>>& into) const {
    if (has(name)) into = std::chrono::duration<double>(at(name).cast<double>());
  }
  [[nodiscard]] std::map<std::string, Value> values(const char* name) const {
    std::map<std::string, Value> out;
    if (has(name))
      for (const auto& [key, value] : at(name).cast<py::dict>())
        out.emplace(key.cast<std::string>(), to_value(value, key.cast<std::string>()));
    return out;
  }

 private:
  py::dict items_;
};

tune::Resources to_resources(const py::dict& items) {
  tune::Resources resources;
  for (const auto& [key, amount] : items) {
    const auto name = key.cast<std::string>();
    if (name == "cpu")
      resources.cpu = amount.cast<double>();
    else if (name == "gpu")
      resources.gpu = amount.cast<double>();
    else
      resources.custom[name] = amount.cast<double>();
  }
  return resources;
}

tune::SearchAlg to_search(const Reader& given) {
  tune::SearchAlg search;
  given.read("search", search.name);
  search.settings = given.values("search_settings");
  for (const py::handle point : given.at("points_to_evaluate"))
    search.points_to_evaluate.push_back(to_value(point));
  given.read("search_max_concurrent", search.max_concurrent);
  for (const py::handle item : given.at("known")) {
    const auto pair = py::reinterpret_borrow<py::tuple>(item);
    search.known.push_back({to_value(pair[0]), pair[1].cast<std::vector<double>>()});
  }
  if (given.has("custom_search"))
    search.make = [held = Held(given.at("custom_search"))](
                      std::shared_ptr<const search::Space> space, search::SamplerOptions options) {
      return python_sampler(std::move(space), std::move(options), held);
    };
  return search;
}

/// Who gets how many ranks; none: as the controller has it.
tune::ResourceAllocation to_allocation(const Reader& given) {
  if (given.has("custom_allocation")) return python_allocation(Held(given.at("custom_allocation")));
  if (!given.has("allocation")) return {};
  const auto name = given.at("allocation").cast<std::string>();
  auto allocate = name == "top_job" ? tune::DistributeResourcesToTopJob()
                  : name == "reuse" ? tune::ReuseWorkers()
                                    : tune::DistributeResources();
  return [allocate = std::move(allocate),
          reserved = given.at("reserved_ranks").cast<int>()](tune::RankShares shares) {
    shares.ranks -= reserved;
    return allocate(shares);
  };
}

tune::Scheduling to_scheduling(const Reader& given) {
  tune::Scheduling scheduling;
  given.read("scheduler", scheduling.name);
  scheduling.settings = given.values("scheduler_settings");
  given.read("time_attr", scheduling.time_attr);
  if (given.has("mutations")) scheduling.mutations = to_spec(given.at("mutations"));
  if (given.has("explore"))
    scheduling.explore = [held = Held(given.at("explore"))](Value config) {
      return with_lock([&] { return to_value(call_python(held.get(), to_python(config))); });
    };
  scheduling.allocation = to_allocation(given);
  if (given.has("custom_scheduler"))
    scheduling.make = [held =
                           Held(given.at("custom_scheduler"))](search::SchedulerOptions options) {
      return python_scheduler(std::move(options), held);
    };
  return scheduling;
}

tune::Options to_options(const Reader& given) {
  tune::Options options;
  given.read("name", options.name);
  given.read("metric", options.metric);
  given.read("mode", options.mode);
  for (const auto& [metric, mode] :
       given.at("objectives").cast<std::vector<std::pair<std::string, std::string>>>())
    options.objectives.push_back(
        {metric, mode == "max" ? search::Direction::maximize : search::Direction::minimize});
  if (given.has("space"))
    options.space = space_of(given.at("space"));
  else
    options.config = to_spec(given.at("config"));
  given.read("num_samples", options.num_samples);
  options.search_alg = to_search(given);
  options.scheduler = to_scheduling(given);
  given.read("seed", options.seed);
  given.read("stop", options.stop);
  if (given.has("stopper"))
    options.stopper = [trial = Held(given.at("stopper")), study = Held(given.at("stop_all"))] {
      return python_stopper(trial, study);
    };
  given.read("time_budget", options.time_budget);
  given.read("trial_time_limit", options.trial_time_limit);
  options.resources_per_trial = to_resources(given.at("resources_per_trial"));
  if (given.has("rank_range")) {
    const auto [least, most] = given.at("rank_range").cast<std::pair<int, int>>();
    options.resources_per_trial.ranks = {least, most};
  }
  if (given.has("total_resources"))
    options.total_resources = to_resources(given.at("total_resources"));
  given.read("max_concurrent_trials", options.max_concurrent_trials);
  given.read("max_failures", options.max_failures);
  given.read("fail_fast", options.fail_fast);
  given.read("keep_checkpoints_num", options.keep_checkpoints_num);
  given.read("checkpoint_score_attr", options.checkpoint_score_attr);
  given.read("checkpoint_freq", options.checkpoint_freq);
  given.read("checkpoint_at_end", options.checkpoint_at_end);
  given.read("restore", options.restore);
  const auto resume = given.at("resume").cast<std::string>();
  options.resume = resume == "auto"      ? tune::Resume::automatic
                   : resume == "yes"     ? tune::Resume::yes
                   : resume == "errored" ? tune::Resume::errored
                                         : tune::Resume::no;
  given.read("local_dir", options.local_dir);
  given.read("storage", options.storage);
  given.read("loggers", options.loggers);
  given.read("verbose", options.verbose);
  for (const py::handle callback : given.at("callbacks"))
    options.callbacks.push_back(python_callback(py::reinterpret_borrow<py::object>(callback)));
  if (given.has("trial_dirname_creator"))
    options.trial_dirname_creator = [held = Held(given.at("trial_dirname_creator"))](
                                        std::int64_t number, const tune::Config& config) {
      return with_lock(
          [&] { return call_python(held.get(), number, to_python(config)).cast<std::string>(); });
    };
  return options;
}

// --- running
// --------------------------------------------------------------------------------------

/// Runs the action on a thread of its own. A signal handler that raises sets `interrupted`; its
/// exception is raised when the action has come to its end.
void run_with_signals(const std::function<void()>& action, std::atomic<bool>& interrupted) {
  Mutex mutex;
  CondVar changed;
  bool is_done = false;
  std::exception_ptr error;
  std::thread thread([&] {
    try {
      action();
    } catch (...) {
      error = std::current_exception();
    }
    const MutexLock lock(mutex);
    is_done = true;
    changed.notify_one();
  });
  std::optional<py::error_already_set> raised;
  for (bool done = false; !done;) {
    Unlocked unlocked;
    {
      MutexLock lock(mutex);
      changed.wait_for(lock, std::chrono::milliseconds(50), [&] { return is_done; });
      done = is_done;
    }
    unlocked.restore();
    if (!raised && PyErr_CheckSignals() != 0) {
      raised.emplace();
      interrupted = true;
    }
  }
  thread.join();
  if (raised) throw *raised;
  if (error) std::rethrow_exception(error);
}

/// `options` has every name that Reader asks for; see kolo/tune/_run.py.
py::dict run_study(const py::dict& items) {
  const Reader given(items);
  const auto executor = given.at("executor").cast<std::string>();
  const auto name = given.at("trainable_name").cast<std::string>();
  tune::StudySetup setup;
  setup.options = to_options(given);
  setup.spec.trainable = name;
  const tune::Resources each = setup.options.resources_per_trial;  // of elastic trials: each rank
  setup.per_trial = tune::resources_for(std::max(1, each.ranks.least), each);
  setup.makes_directories = executor != "thread" || !setup.options.loggers.empty();
  setup.observers = tune::default_observers(setup.options);
  std::atomic<bool> interrupted{false};
  setup.interrupted = &interrupted;

  tune::ExecutorSetup trials;
  trials.policy = {setup.options.checkpoint_freq, setup.options.checkpoint_at_end};
  given.read("kolo", trials.kolo);
  given.read("num_hosts", trials.shape.nodes);
  given.read("num_slots", trials.shape.ranks_per_node);
  if (each.ranks.most > 0) {
    trials.shape.ranks_per_node = each.ranks.least;
    trials.shape.most_ranks = each.ranks.most;
    trials.shape.threads_per_rank = std::max(1, static_cast<int>(std::ceil(each.cpu)));
  }
  std::vector<std::string> hosts;
  given.read("hosts", hosts);
  const bool is_on_cluster = !given.at("cluster").is_none();
  if (trials.shape.nodes > 1 && !is_on_cluster) trials.shape.hosts = launch::parse_hosts(hosts);
  for (auto& host : trials.shape.hosts)
    host.slots = std::max(host.slots, trials.shape.ranks_per_node);
  if (executor == "thread")
    trials.trainable = to_runnable(given.at("trainable"), given.at("is_class").cast<bool>(), name);
  else
    trials.command = [argv = given.at("command").cast<std::vector<std::string>>(),
                      environment = given.at("environment").cast<std::vector<std::string>>()](
                         const tune::StartOrder&) {
      return tune::TrialCommand{argv, environment};
    };
  given.read("cluster", setup.options.cluster);
  if (!setup.options.cluster.empty()) {
    const int ranks = trials.shape.nodes * trials.shape.ranks_per_node;
    trials.shape.threads_per_rank =
        std::max(1, static_cast<int>(std::ceil(setup.per_trial.cpu / ranks)));
    tune::use_cluster(setup.options, setup.per_trial, trials.shape);
  }
  setup.make_executor = [&](const tune::ExecutorPlace& place) {
    trials.place = place;
    return tune::make_executor(executor, std::move(trials));
  };

  std::optional<tune::Analysis> analysis;
  bool was_interrupted = false;
  run_with_signals(
      [&] {
        tune::Study study(std::move(setup));
        study.run();
        was_interrupted = study.was_interrupted();
        analysis = study.analysis();
      },
      interrupted);
  return analysis_to_python(*analysis, was_interrupted);
}

}  // namespace

// --- trials
// ---------------------------------------------------------------------------------------

void bind_study(py::module_& m) {
  m.def("run_study", &run_study);
  m.def("read_study", &read_study);
  m.def("run_as_trial", [](py::object trainable, bool is_class, std::int64_t freq, bool at_end) {
    const tune::Runnable runnable = to_runnable(std::move(trainable), is_class, "trainable");
    py::gil_scoped_release unlocked;
    tune::run_as_trial(runnable, {freq, at_end});
  });

  m.def("trial_report", [](py::handle metrics) {
    const Value value = to_value(metrics);
    return blocking([&] {
      try {
        return tune::session().try_report(value);
      } catch (const tune::Stopped&) {  // it was told so before
        return false;
      }
    });
  });
  // What a program says at its end. Raises failed_precondition if it is no trial.
  m.def("trial_report_last", [](py::handle metrics) {
    const Value value = to_value(metrics);
    blocking([&] {
      try {
        tune::session().report_last(value);
      } catch (const tune::Stopped&) {  // nobody wants to know
      }
    });
  });
  m.def("trial_fail", [](const std::string& error) {
    blocking([&] {
      tune::TrialLink::from_environment(/*own_connection=*/false).send(tune::failure_line(error));
    });
  });
  m.def("trial_should_stop", [] { return tune::session().should_stop(); });
  m.def("trial_should_save", [] { return tune::session().should_save(); });
  m.def("trial_save", [](const py::object& write) {
    tune::session().save_checkpoint(
        [&](const std::filesystem::path& directory) { call_python(write, directory.string()); });
  });
  m.def("trial_checkpoint", []() -> py::object {
    const auto checkpoint = tune::session().checkpoint();
    return checkpoint ? py::object(py::str(checkpoint->string())) : py::none();
  });
  m.def("trial_iteration", [] { return tune::session().iteration(); });
  m.def("trial_id", [] { return tune::session().trial_id(); });
  m.def("trial_name", [] { return tune::session().trial_name(); });
  m.def("trial_dir", [] { return tune::session().trial_dir().string(); });
}

}  // namespace kolo::python

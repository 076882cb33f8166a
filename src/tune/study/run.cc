#include <unistd.h>

#include <cstdlib>

#include "base/env.h"
#include "base/errors.h"
#include "base/log.h"
#include "kolo/tune.h"
#include "tune/study/controller.h"
#include "tune/study/study_launch.h"
#include "tune/study/study_reader.h"
#include "tune/study/study_spec.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace fs = std::filesystem;

namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void check_study_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw_error(ErrorCode::invalid_argument, "'{}' cannot be the name of a study", name);
}

Resources resources_of_trial(const Options& options, const std::optional<Ranks>& ranks) {
  Resources wanted = options.resources_per_trial;
  if (!ranks) return wanted;
  if (ranks->num_hosts < 1 || ranks->num_slots < 1)
    throw_error(ErrorCode::invalid_argument, "a trial needs at least one host and one slot");
  // What the slots of this machine need; other hosts give their own.
  wanted.cpu = ranks->cpus_per_slot * ranks->num_slots;
  wanted.gpu = ranks->use_gpu ? ranks->num_slots : 0;
  return wanted;
}

}  // namespace

fs::path results_directory(const Options& options) {
  if (!options.local_dir.empty()) return fs::absolute(options.local_dir);
  if (auto results = environment("KOLO_RESULTS")) return fs::absolute(*results);
  return fs::path(environment("HOME").value_or(".")) / "kolo_results";
}

std::string storage_url(const Options& options) {
  if (!options.storage.empty()) return options.storage;
  if (auto storage = environment("KOLO_STORAGE")) return *storage;
  const fs::path directory = results_directory(options);
  std::error_code error;
  fs::create_directories(directory, error);
  if (error) throw_error(ErrorCode::io, "cannot make {}: {}", directory.string(), error.message());
  return (directory / "kolo.db").string();
}

store::StudyRecord open_study(store::StudyStore& store, Options& options, const StudySpec& spec,
                              bool makes_directories) {
  if (options.name.empty()) options.name = spec.trainable + "_" + date_text(seconds_now());
  check_study_name(options.name);
  if (auto found = store.find(options.name)) {
    if (options.resume == Resume::no)
      throw_error(ErrorCode::already_exists,
                  "there is a study '{}' in {} already; resume it, or choose another name",
                  options.name, store.database().name());
    return *found;
  }
  if (options.resume == Resume::yes || options.resume == Resume::errored)
    static_cast<void>(store.at(options.name));  // throws
  store::StudyRecord study;
  study.name = options.name;
  study.directory = (results_directory(options) / options.name).string();
  if (makes_directories) {
    std::error_code error;
    fs::create_directories(study.directory, error);
    if (error) throw_error(ErrorCode::io, "cannot make {}: {}", study.directory, error.message());
  }
  study.spec = spec.to_json();
  study.created = seconds_now();
  study.id = store.create(study);
  return study;
}

Analysis run(Runnable trainable, Options options) {
  const SelfCall call;
  if (const auto past = call.past_study()) {
    auto database = store::open_database(past->first);
    store::StudyStore store(*database);
    return read_study(store, past->second);
  }
  const auto executor = options.executor != Executor::automatic ? options.executor
                        : trainable.ranks()                     ? Executor::ranks
                                                                : Executor::thread;
  if (executor == Executor::ranks && !trainable.ranks())
    throw_error(ErrorCode::invalid_argument,
                "the executor 'ranks' needs a DistributedTrainable, which says how many");
  if (executor != Executor::ranks && trainable.ranks())
    throw_error(ErrorCode::invalid_argument, "a DistributedTrainable needs the executor 'ranks'");
  if (options.log_to_file && executor == Executor::thread)
    log::warning(
        "log_to_file: trials that are threads share the streams of this program; to have a file "
        "for "
        "each, choose Executor::process");
  const ClassPolicy policy{options.checkpoint_freq, options.checkpoint_at_end};
  run_if_trial(trainable, options, policy);

  StudySpec spec;
  spec.trainable = trainable.name();
  spec.search = options.search_alg.name.empty() ? "grid" : options.search_alg.name;
  spec.scheduler = options.scheduler.name;
  spec.objectives = Steering(options).objectives();  // and everything is checked before
  const Resources per_trial = resources_of_trial(options, trainable.ranks());
  ResourcePool(options.total_resources.value_or(machine_resources())).require_possible(per_trial);
  require_loggers(options.loggers);
  auto database = store::open_database(storage_url(options));
  store::StudyStore store(*database);
  const bool makes_directories = executor != Executor::thread || !options.loggers.empty();
  const auto study = open_study(store, options, spec, makes_directories);
  call.remember(storage_url(options), options.name);

  ControllerSetup setup;
  setup.trainable_name = trainable.name();
  setup.per_trial = per_trial;
  setup.makes_directories = makes_directories;
  setup.make_executor = [&](std::shared_ptr<Inbox> inbox) -> std::unique_ptr<TrialExecutor> {
    if (executor == Executor::thread)
      return make_thread_executor(std::move(inbox), trainable, policy);
    return make_self_executor(std::move(inbox), trainable, call, study.directory);
  };
  setup.observers = default_observers(options);
  setup.options = options;
  Controller controller(std::move(setup), store, study);
  controller.run();
  Analysis analysis = controller.analysis();
  if (options.raise_on_failed_trial)
    if (const auto failed = analysis.errors(); !failed.empty())
      throw_error(ErrorCode::internal, "study {}: {} of {} trials failed; the first, {}: {}",
                  options.name, failed.size(), analysis.trials().size(), failed.front()->id,
                  failed.front()->error);
  return analysis;
}

}  // namespace kolo::tune

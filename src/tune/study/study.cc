// There are two constructors so that everything in Checked, which needs no database, is checked
// before one is opened or created. The members after it are initialised in the order in which the
// header lists the steps. The record is read again after the claim, because an earlier controller
// may have written until then. When prepare() fails, a study without any commit is removed with its
// empty directory. The new specification is stored with the first commit only, so that a resume
// that is refused leaves the study as it was. A study without a name tries numbered names until its
// row is accepted, since other processes may choose the same.
#include "tune/study/study.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/utf8.h"
#include "tune/study/controller.h"
#include "tune/study/rank_sharing.h"
#include "tune/study/study_reader.h"
#include "tune/trial/trial_names.h"

namespace kolo::tune {
namespace fs = std::filesystem;
namespace {

/// A path that holds wherever a trial starts.
std::string checkpoint_to_restore(const std::string& path) {
  if (path.empty()) return path;
  std::error_code none;
  if (!fs::exists(path, none))
    throw_error(ErrorCode::not_found, "the checkpoint {} to restore does not exist", path);
  return fs::absolute(path).string();
}

/// Each running trial takes a few descriptors, and the usual limit is meant for programs that call
/// select(). Those of the trials keep it: who starts them was started before.
void use_all_descriptors() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

store::StudyRecord create(store::StudyStore& store, const StudySetup& setup,
                          const std::string& name) {
  store::StudyRecord study;
  study.name = study.first_name = name;
  study.directory = (results_directory(setup.options) / name).string();
  require_plain_utf8(study.directory, "the directory of a study");
  // Before the study is stored: nothing begins where nothing can be written.
  if (setup.makes_directories) make_lasting_directories(study.directory);
  study.spec = setup.spec.to_json();
  study.created = setup.clock->date();
  study.id = store.create(study);
  return study;
}

/// A study that nobody named: after its program and the time, with a number behind it where several
/// begin within a second.
store::StudyRecord create_unnamed(store::StudyStore& store, const StudySetup& setup) {
  const std::string base = setup.spec.trainable + "_" + date_text(setup.clock->date());
  std::string name = base;
  for (int number = 2;; ++number) {
    check_study_name(name);
    try {
      if (!store.find(name)) return create(store, setup, name);
    } catch (const Error& error) {
      if (error.code() != ErrorCode::already_exists) throw;  // another process was faster
    }
    name = fmt::format("{}_{}", base, number);
  }
}

/// Finds the study or creates it, as options.resume says.
store::StudyRecord find_or_create(store::StudyStore& store, const StudySetup& setup) {
  const Options& options = setup.options;
  const bool must_exist = options.resume == Resume::yes || options.resume == Resume::errored;
  if (options.name.empty() && must_exist)
    throw_error(ErrorCode::invalid_argument,
                "it is not said which study to resume; give its name, which `kolo studies` lists");
  if (options.name.empty()) return create_unnamed(store, setup);
  if (auto found = store.find(options.name)) {
    if (options.resume == Resume::no)
      throw_error(
          ErrorCode::already_exists,
          "there is a study '{}' in {} already; {} to continue it, choose another name, or "
          "remove it with `kolo delete {}`",
          options.name, store.database().name(),
          setup.spec.command.empty() ? "set Options::resume to Resume::automatic" : "add --resume",
          options.name);
    return *found;
  }
  if (must_exist)
    static_cast<void>(store.at(options.name));  // throws not_found, with the nearest name
  return create(store, setup, options.name);
}

/// Names of studies may be used again, in another database or after a removal.
std::string unique_name(const store::StudyRecord& study) {
  const std::string id = trial_id(study.first_name, study.created, 0);
  return study.first_name + "-" + id.substr(0, id.find('_'));
}

}  // namespace

void check_study_name(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw_error(ErrorCode::invalid_argument,
                "'{}' cannot be the name of a study, because it names a directory; use a name "
                "without '/'",
                name);
  require_plain_utf8(name, "the name of a study");
}

fs::path results_directory(const Options& options) {
  if (!options.local_dir.empty()) return fs::absolute(options.local_dir);
  if (auto results = environment("KOLO_RESULTS")) return fs::absolute(*results);
  return fs::path(environment("HOME").value_or(".")) / "kolo_results";
}

std::string storage_url(const Options& options) {
  if (!options.storage.empty()) return options.storage;
  if (auto storage = environment("KOLO_STORAGE")) return *storage;
  const fs::path directory = results_directory(options);
  make_lasting_directories(directory);
  return (directory / "kolo.db").string();
}

/// The parts that need no database, checked before there is one.
struct Study::Checked {
  StudySetup setup;
  Steering steering;
  ResourcePool pool;

  explicit Checked(StudySetup given)
      : setup(std::move(given)),
        steering(setup.options),
        pool(setup.options.total_resources.value_or(machine_resources())) {
    Options& options = setup.options;
    StudySpec& spec = setup.spec;
    options.scheduler.allocation = allocation_of(options);
    pool.require_possible(setup.per_trial);
    require_loggers(options.loggers);
    options.restore = checkpoint_to_restore(options.restore);
    if (!options.name.empty()) check_study_name(options.name);
    if (setup.trial_prefix.empty()) setup.trial_prefix = spec.trainable;
    spec.objectives = steering.objectives();
    if (spec.search.empty())
      spec.search = options.search_alg.name.empty() ? "grid" : options.search_alg.name;
    spec.scheduler = steering.scheduler_name();
    spec.outline = steering.space().outline();
    spec.num_samples = options.num_samples;
  }
};

Study::Study(StudySetup setup) : Study(Checked(std::move(setup))) {}

Study::Study(Checked checked)
    : database_(checked.setup.connect ? checked.setup.connect()
                                      : store::open_database(storage_url(checked.setup.options))),
      store_(*database_),
      record_(find_or_create(store_, checked.setup)),
      claim_(store_, record_.id) {
  // Read again: an earlier controller may have written until the claim.
  record_ = store_.at(record_.name);
  try {
    prepare(checked);
  } catch (...) {
    if (record_.seq == 0) forget();
    throw;
  }
}

/// Of a study in which nothing has happened yet, nothing stays.
void Study::forget() noexcept {
  try {
    store_.remove(record_.id);
    std::error_code not_empty;
    fs::remove(record_.directory, not_empty);
  } catch (const std::exception&) {
    // The error that led here is the one to tell.
  }
}

void Study::prepare(Checked& checked) {
  auto& setup = checked.setup;
  StudyChanges changes = changes_of(store_, record_, setup.spec, checked.steering);
  // Before anything else of the study, since it waits until nothing of an earlier session's trials
  // is left.
  executor_ =
      setup.make_executor({inbox_, record_.first_name, unique_name(record_), record_.directory,
                           std::chrono::duration_cast<std::chrono::milliseconds>(
                               clock_duration(setup.options.grace.count()))});
  use_all_descriptors();
  std::optional<search::Direction> first_objective;
  std::vector<std::string> metrics;
  for (const auto& objective : checked.steering.objectives()) {
    if (!first_objective) first_objective = objective.direction;
    metrics.push_back(objective.metric);
  }
  state_.reset(new StudyState{
      .clock = *setup.clock,
      .options = setup.options,
      .per_trial = setup.per_trial,
      .per_rank = setup.options.resources_per_trial,
      .makes_directories = setup.makes_directories,
      .needs_finite_values = setup.needs_finite_values,
      .steering = std::move(checked.steering),
      .trials = Trials(first_objective),
      .journal = Journal(store_, record_, *setup.clock),
      .actions = {},
      .pool = std::move(checked.pool),
      .announce = Announcements({record_.name, setup.trial_prefix}, setup.options,
                                std::move(setup.observers), std::move(metrics)),
      .policy_files = PolicyFiles(record_.directory),
      .changes = std::move(changes),
  });
  controller_ = std::make_unique<Controller>(*state_, inbox_, *executor_, setup.interrupted);
  // Everything was found good. It is stored with the first commit, so that a study that cannot be
  // resumed like this stays as it is.
  state_->journal.set_spec(setup.spec.to_json());
  state_->journal.set_study_status(store::StudyStatus::running);
  if (record_.seq == 0 && setup.options.num_samples != 1 &&
      state_->steering.space().varied_paths().empty())
    state_->announce.message(
        "nothing in the space varies, so all trials have the same configuration; domains are "
        "written as {uniform: [0, 1]} or {choice: [a, b]}");
  for (const auto& change : state_->changes.said) {
    state_->announce.message(change);
    state_->journal.event("changed", std::nullopt, change);
  }
}

Study::~Study() = default;

void Study::run() { controller_->run(); }
bool Study::was_interrupted() const { return controller_->was_interrupted(); }
Analysis Study::analysis() { return read_study(store_, record_.name); }

}  // namespace kolo::tune

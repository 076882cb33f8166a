// run_search() reads the warm start first, since preparing the folder may move that file aside.
// prepare_folder() checks the plan before it changes the folder, and writes init_infos.json last
// and atomically; a resume compares that file with the plan. Evaluations of a results.csv without a
// database become known results, and count toward the number of evaluations that was asked for. The
// history is told to the files and the cache after the study is constructed, because its claim
// keeps other processes from writing more. The study itself has one CPU per worker and trials of
// one CPU, so that a free CPU means a free worker.
#include "hps/search/search_run.h"

#include <thread>
#include <unordered_map>

#include "base/env.h"
#include "base/errors.h"
#include "base/files.h"
#include "base/log.h"
#include "hps/search/evaluation.h"
#include "hps/search/evaluators.h"
#include "hps/search/search_files.h"
#include "hps/workers.h"
#include "kolo/random.h"
#include "search/space/json_value.h"
#include "tune/executor/jobs_executor.h"
#include "tune/protocol/value_text.h"
#include "tune/study/giving_up.h"
#include "tune/study/resource_pool.h"
#include "tune/study/steering.h"
#include "tune/study/study.h"

namespace kolo::hps {
namespace fs = std::filesystem;
namespace {

/// Rows of a results.csv as results that are known; those of another space are an error.
std::vector<tune::KnownResult> known_results(const ResultsTable& table, const SearchPlan& plan,
                                             const fs::path& origin) {
  if (table.objectives != plan.objectives)
    throw_error(ErrorCode::invalid_argument, "{} has {} objectives, the problem {}",
                origin.string(), table.objectives, plan.objectives);
  std::vector<tune::KnownResult> known;
  for (const auto& row : table.rows) {
    if (row.status == "CANCELLED") continue;
    tune::KnownResult result{nested_config(row.parameters), row.objectives};
    try {
      static_cast<void>(plan.space->point(result.config));
    } catch (const Error& error) {
      throw_error(ErrorCode::invalid_argument, "{}: evaluation {} is not of this space: {}",
                  origin.string(), row.job_id, error.message());
    }
    known.push_back(std::move(result));
  }
  return known;
}

/// What of a results.csv without a database counts as this search's own.
struct Continued {
  std::int64_t evaluations = 0;   ///< so many of its first rows
  std::int64_t first_number = 0;  ///< of evaluations that follow: none of its ids comes again
};

Continued continued_in(const Json& infos) {
  Continued continued;
  continued.first_number = infos.value("first_number", std::int64_t{0});
  continued.evaluations = infos.value("continued", continued.first_number);
  return continued;
}

Continued continued_of(const ResultsTable& table) {
  Continued continued{.evaluations = std::ssize(table.rows), .first_number = 0};
  // Ids of others, and such numbers that nothing counts up to, are never given here.
  constexpr std::int64_t kMost = 1'000'000'000'000;
  for (const auto& row : table.rows)
    if (const Value id = value_of_field(row.job_id); id.is_integer() && id.as_integer() < kMost)
      continued.first_number = std::max(continued.first_number, id.as_integer() + 1);
  return continued;
}

/// The job that this search is; "" = none.
std::string own_job() {
  const auto database = environment("KOLO_DB"), id = environment("KOLO_JOB_ID");
  return database && id ? fmt::format("{}#{}", *database, *id) : "";
}

/// What makes a search the one that a resume goes on with.
Json infos_of(const SearchPlan& plan, const std::string& id, const Continued& continued) {
  return {{"kolo_search", 1},
          {"id", id},
          {"kind", plan.kind},
          {"search", plan.search},
          {"problem", plan.problem},
          {"run", plan.run},
          {"seed", plan.seed},
          {"max_evals", plan.max_evals},
          {"evaluator", plan.evaluator.method},
          {"num_workers", workers_of(plan)},
          {"cache_key", plan.cache_key},
          {"first_number", continued.first_number},
          {"continued", continued.evaluations},
          {"agents", plan.agents},
          {"job", own_job()}};
}

/// In what the search in the folder is another one than this; "" = in nothing.
std::string difference(const Json& infos, const SearchPlan& plan) {
  const std::pair<const char*, const std::string&> fields[] = {
      {"kind", plan.kind}, {"search", plan.search}, {"problem", plan.problem}};
  for (const auto& [key, wanted] : fields)
    if (const auto was = infos.value(key, wanted); was != wanted)
      return fmt::format("{} '{}', not '{}'", key, was, wanted);
  if (const auto was = infos.value("seed", plan.seed); was != plan.seed)
    return fmt::format("--seed {}, not {}", was, plan.seed);
  return {};
}

/// Whether an earlier run of the job that this search is began the search in the folder.
bool was_begun_by_this_job(const SearchPlan& plan) {
  const Json infos = look_at_folder(plan.log_dir).infos;
  const std::string job = own_job();
  return !infos.is_null() && !job.empty() && infos.value("job", "") == job &&
         difference(infos, plan).empty();
}

/// Unlike those of all other searches.
std::string new_search_id(const SearchPlan& plan) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return fmt::format(
      "{}-{:08x}", plan.search,
      Random(static_cast<std::uint64_t>(now)).stream(plan.log_dir.string()).next() & 0xffffffff);
}

tune::Options options_of(const SearchPlan& plan) {
  tune::Options options;
  options.name = plan.agents == 1 ? "search" : fmt::format("search-{}", plan.agent);
  for (std::size_t i = 0; i < plan.objectives; ++i)
    options.objectives.push_back({objective_name(i, plan.objectives), search::Direction::maximize});
  options.space = plan.space;
  options.num_samples = plan.max_evals;
  options.search_alg = plan.algorithm;
  options.seed = plan.seed;
  options.time_budget = plan.timeout;
  options.trial_time_limit = plan.evaluator.timeout;
  options.grace = plan.grace;
  // Who waits for a place waits for a worker.
  const int workers = workers_of(plan);
  options.max_concurrent_trials = workers;
  options.resources_per_trial.cpu = 1;
  // The GPUs of jobs are those of the launchers' nodes.
  const bool as_jobs = tune::canonical_executor(plan.evaluator.method) == "jobs";
  options.resources_per_trial.gpu = as_jobs ? 0 : plan.evaluator.num_gpus_per_task;
  options.total_resources = tune::machine_resources();
  options.total_resources->cpu = workers;
  options.raise_on_failed_trial = false;
  options.resume = tune::Resume::automatic;
  options.local_dir = fs::absolute(plan.log_dir).string();
  options.storage = (fs::absolute(plan.log_dir) / "kolo.db").string();
  options.loggers = {};
  // The configuration is in results.csv; a folder is found by the number of its evaluation.
  options.trial_dirname_creator = [](std::int64_t number, const Value&) {
    return fmt::format("evaluation_{:05}", number);
  };
  return options;
}

/// Fills the files and the cache with what the study already has.
void tell_history(store::StudyStore& store, const store::StudyRecord& study, SearchFiles& files,
                  tune::ResultCache* cache) {
  const auto trials = store.trials(study.id);
  std::unordered_map<std::int64_t, std::string> reports;
  for (auto& report : store.last_reports(study.id))
    reports.emplace(report.trial, std::move(report.metrics));
  files.catch_up(study.created, trials, reports);
  if (cache == nullptr) return;
  for (const auto& trial : trials)
    if (const auto report = reports.find(trial.number);
        trial.ended_seq && trial.status != tune::TrialStatus::error && report != reports.end())
      cache->add(tune::decode(trial.config, "a configuration"),
                 tune::decode(report->second, "a report"));
}

}  // namespace

int workers_of(const SearchPlan& plan) {
  const auto& how = plan.evaluator;
  if (how.num_workers > 0) return how.num_workers;
  if (how.method == "serial") return 1;
  if (tune::canonical_executor(how.method) == "jobs") {
    if (auto allocation = Allocation::from_environment()) {
      allocation->evals_per_node = std::max(allocation->evals_per_node, how.num_evals_per_node);
      allocation->nodes_per_eval = how.num_nodes_per_eval;
      allocation->search_nodes = tune::find_jobs_place(plan.search).study_nodes;
      return workers_in(*allocation);
    }
  }
  if (!how.hosts.empty())
    return std::max(1, launch::groups_at_once(how.hosts, how.num_nodes_per_eval,
                                              how.num_ranks_per_node * how.num_threads_per_rank));
  const auto processors = static_cast<int>(std::max(1.0, tune::machine_resources().cpu));
  return workers_here(processors, how.num_ranks_per_node, how.num_threads_per_rank);
}

void read_warm_start(SearchPlan& plan) {
  if (plan.warm_start.empty()) return;
  auto known = known_results(read_results(plan.warm_start), plan, plan.warm_start);
  plan.algorithm.known.insert(plan.algorithm.known.end(), known.begin(), known.end());
  plan.warm_start.clear();
}

void check_search(const SearchPlan& plan) {
  if (plan.max_evals == 0 || plan.max_evals < -1)
    throw_error(ErrorCode::invalid_argument, "--max-evals {}: above 0, or -1 for no end",
                plan.max_evals);
  if (plan.space->varied_paths().empty())
    throw_error(ErrorCode::invalid_argument,
                "no parameter of the problem varies, so all evaluations would be the same; write "
                "domains, such as {{uniform: [0, 1]}} or {{choice: [a, b]}}");
  if (plan.cache_key != "uuid" && plan.cache_key != "to_dict")
    throw_error(ErrorCode::invalid_argument, "cache key '{}' is unknown; known: uuid, to_dict",
                plan.cache_key);
  tune::check_executor(plan.evaluator.method, evaluator_setup(plan));
  tune::Options options = options_of(plan);
  // A sampler that agents share is made by all of them together.
  if (plan.agents > 1) options.search_alg = {.name = "random"};
  const tune::Steering checked(options);
}

namespace {

/// Evaluations of a results.csv without a database, which count as this search's own.
std::optional<ResultsTable> continued_results(const SearchPlan& plan, std::int64_t evaluations) {
  if (evaluations == 0) return std::nullopt;
  const fs::path older = plan.log_dir / kOlderResults;
  auto table = read_results(fs::exists(older) ? older : plan.log_dir / "results.csv");
  table.rows.resize(std::min(table.rows.size(), static_cast<std::size_t>(evaluations)));
  return table;
}

}  // namespace

void prepare_folder(SearchPlan& plan) {
  check_search(plan);
  make_lasting_directories(plan.log_dir);
  if (!plan.resume && was_begun_by_this_job(plan)) {
    plan.resume = true;
    log::info("the job continues its search in {}", plan.log_dir.string());
  }
  if (!plan.resume) move_aside(plan.log_dir);
  const EarlierSearch earlier = look_at_folder(plan.log_dir);
  // A search that ended before it had anything is in nobody's way.
  const bool has_begun = earlier.has_database || earlier.has_results;
  if (!earlier.infos.is_null() && (plan.resume || has_begun)) {
    if (const auto what = difference(earlier.infos, plan); !what.empty())
      throw_error(ErrorCode::failed_precondition,
                  "{} holds a search with {}: it cannot be resumed as another one; choose another "
                  "--log-dir",
                  plan.log_dir.string(), what);
    return;
  }
  Continued continued;
  if (earlier.has_results && !earlier.has_database) {
    // It has its other name already where a search was killed before the last line of this.
    const fs::path results = plan.log_dir / "results.csv", older = plan.log_dir / kOlderResults;
    const fs::path place = fs::exists(results) ? results : older;
    const auto table = read_results(place);
    static_cast<void>(known_results(table, plan, place));
    continued = continued_of(table);
    if (table.older && place == results)  // its columns are others: it is written anew
      fs::rename(results, older);
  }
  const Json infos = infos_of(plan, new_search_id(plan), continued);
  write_file_atomically(plan.log_dir / "init_infos.json", json_text(infos, 2) + "\n");
}

SearchSummary run_search(SearchPlan plan) {
  plan.log_dir = fs::absolute(plan.log_dir).lexically_normal();
  read_warm_start(plan);
  if (plan.agents == 1) prepare_folder(plan);
  const Json infos = look_at_folder(plan.log_dir).infos;
  const auto [evaluations, first_number] = continued_in(infos);
  std::string id = infos.value("id", plan.search);
  if (plan.agents > 1) id += fmt::format("-{}", plan.agent);

  const auto continued = continued_results(plan, evaluations);
  if (continued) {
    auto known = known_results(*continued, plan, plan.log_dir);
    plan.algorithm.known.insert(plan.algorithm.known.end(), known.begin(), known.end());
    if (plan.max_evals > 0 && plan.max_evals <= evaluations)
      throw_error(ErrorCode::failed_precondition,
                  "{} has {} evaluations already; --max-evals must be more", plan.log_dir.string(),
                  evaluations);
    if (plan.max_evals > 0) plan.max_evals -= evaluations;
  }

  auto files = std::make_shared<SearchFiles>(plan, first_number);
  if (continued)
    for (const auto& row : continued->rows) files->take_over(row);
  files->log().write(plan.resume ? "resume" : "start_infos", infos);
  std::shared_ptr<tune::ResultCache> cache;
  if (plan.cache_key == "to_dict") {
    std::vector<std::string> metrics;
    for (std::size_t i = 0; i < plan.objectives; ++i)
      metrics.push_back(objective_name(i, plan.objectives));
    cache = std::make_shared<tune::ResultCache>(std::move(metrics));
  }

  tune::StudySetup setup;
  setup.options = options_of(plan);
  const auto giving_up = std::make_shared<tune::GivingUp>(plan.max_failures);
  setup.options.stopper = [giving_up] {
    return std::make_unique<tune::GivingUpStopper>(giving_up);
  };
  setup.needs_finite_values = true;
  setup.spec.trainable = plan.run.empty() ? "run" : plan.run;
  setup.spec.search = plan.search;
  setup.trial_prefix = "evaluation";
  setup.per_trial = setup.options.resources_per_trial;
  setup.interrupted = plan.interrupted;
  setup.observers = plan.observers;
  setup.observers.push_back(files);
  setup.observers.push_back(giving_up);
  setup.make_executor = [&](const tune::ExecutorPlace& place) {
    tune::ExecutorSetup executor = evaluator_setup(plan);
    executor.place = place;
    executor.place.unique_name = id;
    executor.cache = cache;
    return tune::make_executor(plan.evaluator.method, std::move(executor));
  };
  tune::Study study(std::move(setup));
  // The study is claimed now: nobody else writes any more.
  tell_history(study.store(), study.record(), *files, cache.get());
  study.run();
  SearchSummary summary = files->summary();
  summary.interrupted = study.was_interrupted();
  summary.gave_up = giving_up->is_hopeless();
  if (cache) {
    summary.cached = cache->used();
    files->log().write("num_cache_used", {{"num_cache_used", cache->used()}});
  }
  return summary;
}

}  // namespace kolo::hps

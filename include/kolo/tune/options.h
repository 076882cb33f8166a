// The options of a study. The names are Ray Tune's.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kolo/search/sampler.h"
#include "kolo/search/scheduler.h"
#include "kolo/search/space.h"
#include "kolo/search/stopper.h"
#include "kolo/tune/callback.h"

namespace kolo::tune {

// The words of a search space.
using search::choice;
using search::grid_search;
using search::lograndint;
using search::loguniform;
using search::qlograndint;
using search::qloguniform;
using search::qrandint;
using search::qrandn;
using search::quniform;
using search::randint;
using search::randn;
using search::sample_from;
using search::Spec;
using search::uniform;

/// A configuration whose result is known before the study begins.
struct KnownResult {
  Value config;
  std::vector<double> values{};  ///< one per objective; empty: the evaluation failed
};

/// Which sampler, by its name in `kolo list samplers`, with its settings.
struct SearchAlg {
  /// "" = every grid_search combination num_samples times, the rest drawn at random.
  std::string name{};
  std::map<std::string, Value> settings{};
  /// Partial configurations to try first.
  std::vector<Value> points_to_evaluate{};
  /// The largest number of trials at once; 0 = as many as the resources allow.
  std::int64_t max_concurrent = 0;
  /// Told to the sampler before the first trial. Configurations that the space does not allow are
  /// an error.
  std::vector<KnownResult> known{};
  /// Makes the sampler, instead of taking it from the table; `name` is then only a label.
  std::function<std::unique_ptr<search::Sampler>(std::shared_ptr<const search::Space>,
                                                 search::SamplerOptions)>
      make{};
};

/// Tune's names for searches, as kolo has them.
SearchAlg BayesOptSearch(std::map<std::string, Value> settings = {});
SearchAlg OptunaSearch(std::map<std::string, Value> settings = {});
SearchAlg HyperOptSearch(std::map<std::string, Value> settings = {});
SearchAlg TuneBOHB(std::map<std::string, Value> settings = {});
SearchAlg ConcurrencyLimiter(SearchAlg search_alg, std::int64_t max_concurrent);
SearchAlg Repeater(SearchAlg search_alg, std::int64_t repeat);

/// How many ranks a trial may have while it runs; {0, 0}: as many as it began with.
struct RankRange {
  int least = 0, most = 0;
};

/// A running trial, to whoever shares out ranks.
struct TrialShare {
  std::int64_t number = 0;
  int ranks = 0;
  std::int64_t iteration = 0;     ///< reports so far
  std::optional<double> value{};  ///< of the first objective, in its last report
};

/// What is shared out: `ranks` ranks, which the trials have or which are free. It can be less than
/// they have, when another trial waits for a place.
struct RankShares {
  std::vector<TrialShare> trials{};
  int ranks = 0;
  RankRange range{};  ///< of each trial
  search::Direction direction = search::Direction::minimize;
};

/// The number of ranks of each trial, in the order of RankShares::trials. Numbers outside of the
/// range are brought into it.
using ResourceAllocation = std::function<std::vector<int>(const RankShares& shares)>;

/// The same number for all.
ResourceAllocation DistributeResources();
/// As many as possible for the best, then for the next.
ResourceAllocation DistributeResourcesToTopJob();
/// Trials keep what they have, and the ranks of those that have ended go to the best that run.
ResourceAllocation ReuseWorkers();

/// Which scheduler, by its name in `kolo list schedulers`, with its settings.
struct Scheduling {
  std::string name = "fifo";
  std::map<std::string, Value> settings{};
  /// The metric by which the scheduler measures time; also the setting "time_attr". "" = as in
  /// Tune: time_total_s for pbt, pb2 and median_stopping_rule, training_iteration for the others.
  std::string time_attr{};
  /// What population based training may change (Tune's hyperparam_mutations); unset = all of
  /// the space.
  std::optional<Spec> mutations{};
  std::function<Value(Value config)> explore{};
  /// Makes a scheduler of your own (a class derived from search::Scheduler), instead of taking one
  /// from the table; `name` is not used then.
  std::function<std::unique_ptr<search::Scheduler>(search::SchedulerOptions)> make{};
  /// Who gets how many ranks, where Resources::ranks is a range. The setting "reuse_workers" means
  /// ReuseWorkers(); unset = DistributeResources().
  ResourceAllocation allocation{};
};

/// Changes the ranks of trials while they run (Resources::ranks), beside another scheduler.
Scheduling ResourceChangingScheduler(Scheduling base_scheduler = {},
                                     ResourceAllocation allocation = DistributeResources());
Scheduling ASHAScheduler(std::map<std::string, Value> settings = {});
Scheduling HyperBandScheduler(std::map<std::string, Value> settings = {});
Scheduling HyperBandForBOHB(std::map<std::string, Value> settings = {});
Scheduling MedianStoppingRule(std::map<std::string, Value> settings = {});
Scheduling PopulationBasedTraining(Spec hyperparam_mutations,
                                   std::map<std::string, Value> settings = {});
/// One trial that repeats what led to a trial of a population: `policy_file` is the study's
/// pbt_policy_<trial>.txt. Without a space the trial begins as that one did.
Scheduling PopulationBasedTrainingReplay(std::string policy_file);
Scheduling PB2(Spec hyperparam_bounds, std::map<std::string, Value> settings = {});

struct Resources {
  double cpu = 1;
  double gpu = 0;
  std::map<std::string, double> custom{};
  /// In resources_per_trial: trials are elastic (docs/elastic.md), and what is above is of each
  /// rank.
  RankRange ranks{};
};

enum class Executor {
  automatic,  ///< ranks for DistributedTrainable, else thread
  thread,     ///< a thread of this process: cheapest; a crash takes the study down
  process,    ///< this program again, for each trial: a crash or leak is the trial's own
  ranks,      ///< several of them, in a ring
  jobs,       ///< as process or ranks, but as a job in the database of $KOLO_DB (docs/jobs.md)
};

enum class Resume {
  no,         ///< start a new study; one of this name is an error
  automatic,  ///< resume the study of this name, or start a new one
  yes,        ///< resume the study of this name, which must exist
  errored,    ///< as yes, and run the trials that failed again
};

struct Objective {
  std::string metric;
  search::Direction direction = search::Direction::minimize;
};

/// The fields can be assigned in any order (`options.metric = "loss";`). In braces,
/// `Options{.name = "first", .metric = "loss"}`, C++ wants them in the order below.
struct Options {
  std::string name{};  ///< "" = the name of the trainable and the date
  std::string metric{};
  std::string mode{};  ///< "min" or "max"
  /// Several objectives, instead of metric and mode.
  std::vector<Objective> objectives{};
  /// The search space …
  Spec config = Spec(Spec::Dict{});
  /// … or one with conditions.
  std::shared_ptr<const search::Space> space{};
  std::int64_t num_samples = 1;  ///< number of trials, or rounds through the grid; -1 = no limit
  SearchAlg search_alg{};
  Scheduling scheduler{};
  std::uint64_t seed = 0;

  /// Stops a trial when any of these metrics has reached its limit.
  std::map<std::string, double> stop{};
  std::function<std::unique_ptr<search::Stopper>()> stopper{};
  std::optional<std::chrono::duration<double>> time_budget{};
  /// The longest time of one run of a trial. A trial that takes longer fails; its error begins with
  /// "F_timeout".
  std::optional<std::chrono::duration<double>> trial_time_limit{};

  Executor executor = Executor::automatic;
  /// The cluster, made by `kolo up`, that trials run on as processes or ranks (docs/cluster.md).
  /// This program and local_dir must have the same paths on all its hosts. "" = this machine.
  std::string cluster{};
  Resources resources_per_trial{};
  /// What all trials share; unset = the processors and CUDA devices of this machine, or what the
  /// cluster has, also later.
  std::optional<Resources> total_resources{};
  std::int64_t max_concurrent_trials = 0;  ///< 0 = what the resources allow

  std::int64_t max_failures = 0;  ///< restarts of a trial from its checkpoint; -1 = no limit
  bool fail_fast = false;         ///< end the study when a trial fails
  bool raise_on_failed_trial = true;

  std::int64_t keep_checkpoints_num = -1;  ///< of each trial; -1 = all
  /// Which are kept: "" = the newest, "accuracy" = the greatest, "min-loss" = the smallest.
  std::string checkpoint_score_attr{};
  std::int64_t checkpoint_freq = 0;  ///< for classes: save every N steps; 0 = only when needed
  bool checkpoint_at_end = false;    ///< for classes: save at the end of a trial

  /// A checkpoint that every trial starts from, for example of another study; "" = none.
  std::string restore{};

  Resume resume = Resume::no;
  std::string local_dir{};  ///< "" = $KOLO_RESULTS, else ~/kolo_results
  /// Database: a file or a URL; "" = $KOLO_STORAGE, else kolo.db in local_dir.
  std::string storage{};
  /// "json" (result.json), "csv" (progress.csv), "tensorboard".
  std::vector<std::string> loggers{"json", "csv", "tensorboard"};
  bool log_to_file = false;  ///< trials that are processes always write files; threads cannot
  std::function<std::string(std::int64_t number, const Config& config)> trial_dirname_creator{};
  std::vector<std::shared_ptr<StudyCallback>> callbacks{};
  /// What is printed: 0 nothing, 1 the state of the study, 2 also results.
  int verbose = 1;
  /// How long a trial that was asked to stop may take before it is killed.
  std::chrono::duration<double> grace = std::chrono::seconds(5);
  /// How long the study waits for a database that is unreachable or full before it fails.
  std::chrono::duration<double> storage_patience = std::chrono::minutes(10);
};

}  // namespace kolo::tune
